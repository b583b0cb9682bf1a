import { useIsSeveral } from "@/api/cluster";
import { FlavorsPage } from "@/features/flavors/flavors-page";
import { NewObjectButton } from "@/features/objects/object-buttons";

export function FlavorsRoute() {
  const several = useIsSeveral();
  return <FlavorsPage actions={!several && <NewObjectButton kinds={["ResourceFlavor"]} />} />;
}
