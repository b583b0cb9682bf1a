/** Names that lead to what they name; an empty one is not the reader's to see. */
import { Text } from "@mantine/core";
import { TextLink } from "@/components/link";

const HIDDEN = (
  <Text span fz="inherit" c="var(--kw-muted)">
    of another tenant
  </Text>
);

/** `name` is "namespace/name". */
export function WorkloadLink({ name: key }: { name: string }) {
  const [namespace = "", name = ""] = key.split("/");
  if (key === "") return HIDDEN;
  return (
    <TextLink to="/workloads/$namespace/$name" params={{ namespace, name }} fz="inherit" title={key}>
      {key}
    </TextLink>
  );
}

export function QueueLink({ name }: { name: string }) {
  if (name === "") return HIDDEN;
  return (
    <TextLink to="/queues/$name" params={{ name }} fz="inherit">
      {name}
    </TextLink>
  );
}

export function NodeLink({ name }: { name: string }) {
  return (
    <TextLink to="/gpus" search={{ node: name }} fz="inherit">
      {name}
    </TextLink>
  );
}

export function DeviceLink({ node, uuid, label }: { node: string; uuid: string; label: string }) {
  return (
    <TextLink to="/gpus" search={{ node, device: uuid }} fz="inherit" title={uuid}>
      {label}
    </TextLink>
  );
}
