import { FlavorsPage } from "@/features/flavors/flavors-page";
import { NewObjectButton } from "@/features/objects/object-buttons";

export function FlavorsRoute() {
  return <FlavorsPage actions={<NewObjectButton kinds={["ResourceFlavor"]} />} />;
}
