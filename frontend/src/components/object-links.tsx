/** Where the name of an object leads. A name that is cut keeps its end, by which names of one series differ. */
import type { ReactNode } from "react";
import { TextLink } from "./link";
import { MiddleEllipsis } from "./middle-ellipsis";

interface Look {
  /** What is shown instead of the name. */
  children?: ReactNode;
  fw?: number;
  /** In tables the row takes the keyboard's focus, not each of its names. */
  inRow?: boolean;
}

const shared = ({ fw, inRow = false }: Look) => ({
  fz: "inherit" as const,
  miw: 0,
  ...(fw === undefined ? {} : { fw }),
  ...(inRow ? { tabIndex: -1 } : {}),
});

export function WorkloadLink({ namespace, name, ...look }: Look & { namespace: string; name: string }) {
  return (
    <TextLink to="/workloads/$namespace/$name" params={{ namespace, name }} {...shared(look)}>
      {look.children ?? <MiddleEllipsis text={name} />}
    </TextLink>
  );
}

export function ClusterQueueLink({ name, ...look }: Look & { name: string }) {
  return (
    <TextLink to="/queues/$name" params={{ name }} {...shared(look)}>
      {look.children ?? <MiddleEllipsis text={name} />}
    </TextLink>
  );
}
