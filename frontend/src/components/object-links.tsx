/** Names that lead to what they name. */
import { Trans } from "@lingui/react/macro";
import { Text } from "@mantine/core";
import type { ReactNode } from "react";
import { useRowCluster } from "./clusters/row-cluster";
import { NameLink, nameLook } from "./link";
import { MiddleEllipsis } from "./middle-ellipsis";

interface Look {
  /** The text in place of the name. */
  children?: ReactNode;
  fw?: number;
  /** In a row of a table: the row takes the keyboard's focus, and a name without room loses its middle. */
  inRow?: boolean;
  /** Within a sentence, where colour alone would not tell it from the words around it. */
  inText?: boolean;
}

const shared = ({ fw, inRow = false, inText = false }: Look) => ({
  className: nameLook(inText),
  ...(fw === undefined ? {} : { style: { fontWeight: fw } }),
  ...(inRow ? { tabIndex: -1 } : {}),
});

const shown = (name: string, { children, inRow = false }: Look) =>
  children ?? (inRow ? <MiddleEllipsis text={name} /> : name);

/** Stands for a name that is not the reader's to see. */
function HiddenName() {
  return (
    <Text span fz="inherit" c="var(--kw-muted)">
      <Trans>of another tenant</Trans>
    </Text>
  );
}

export function WorkloadLink({ namespace, name, ...look }: Look & { namespace: string; name: string }) {
  const inCluster = useRowCluster();
  return (
    <NameLink to="/workloads/$namespace/$name" params={{ namespace, name }} {...inCluster} {...shared(look)}>
      {shown(name, look)}
    </NameLink>
  );
}

/** `workload` is "namespace/name", and shown so. */
export function KeyedWorkloadLink({ workload, ...look }: Look & { workload: string }) {
  const [namespace = "", name = ""] = workload.split("/");
  if (workload === "") return <HiddenName />;
  return (
    <WorkloadLink namespace={namespace} name={name} {...look}>
      {shown(workload, look)}
    </WorkloadLink>
  );
}

const MAX_NAMED = 5;

/** "3 workloads stop: a/b, c/d and 1 more": of `count` workloads the first names that the reader may see. */
export function WorkloadNames({
  text,
  count,
  workloads,
}: {
  text: string;
  count: number;
  workloads: readonly string[];
}) {
  const named = workloads.slice(0, MAX_NAMED);
  const left = count - named.length;
  return (
    <>
      {text}
      {named.length > 0 && ": "}
      {named.map((workload, at) => (
        <span key={workload}>
          {at > 0 && ", "}
          <KeyedWorkloadLink workload={workload} inText />
        </span>
      ))}
      {named.length > 0 && left > 0 && <Trans> and {left} more</Trans>}
    </>
  );
}

export function ClusterQueueLink({ name, ...look }: Look & { name: string }) {
  const inCluster = useRowCluster();
  if (name === "") return <HiddenName />;
  return (
    <NameLink to="/queues/$name" params={{ name }} {...inCluster} {...shared(look)}>
      {shown(name, look)}
    </NameLink>
  );
}

export function LocalQueueLink({ namespace, name, ...look }: Look & { namespace: string; name: string }) {
  const inCluster = useRowCluster();
  return (
    <NameLink
      to="/local-queues/$namespace/$name"
      params={{ namespace, name }}
      {...inCluster}
      {...shared(look)}
    >
      {shown(name, look)}
    </NameLink>
  );
}

export function CohortLink({ name, ...look }: Look & { name: string }) {
  const inCluster = useRowCluster();
  return (
    <NameLink to="/cohorts/$name" params={{ name }} {...inCluster} {...shared(look)}>
      {shown(name, look)}
    </NameLink>
  );
}

export function FlavorLink({ name, ...look }: Look & { name: string }) {
  const inCluster = useRowCluster();
  return (
    <NameLink to="/flavors/$name" params={{ name }} {...inCluster} {...shared(look)}>
      {shown(name, look)}
    </NameLink>
  );
}

export function TopologyLink({ name, ...look }: Look & { name: string }) {
  const inCluster = useRowCluster();
  return (
    <NameLink to="/topologies/$name" params={{ name }} {...inCluster} {...shared(look)}>
      {shown(name, look)}
    </NameLink>
  );
}

export function NodeLink({ name, ...look }: Look & { name: string }) {
  const inCluster = useRowCluster();
  return (
    <NameLink to="/nodes/$name" params={{ name }} {...inCluster} {...shared(look)}>
      {shown(name, look)}
    </NameLink>
  );
}

/** The page of GPUs with the device opened. */
export function DeviceLink({ node, uuid, label }: { node: string; uuid: string; label: string }) {
  const { search } = useRowCluster();
  return (
    <NameLink to="/gpus" search={{ ...search, node, device: uuid }} {...shared({})} title={uuid}>
      {label}
    </NameLink>
  );
}
