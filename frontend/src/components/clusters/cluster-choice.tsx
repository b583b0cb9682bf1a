/** For which of several clusters something is made; nothing where there is one alone. */
import { t } from "@lingui/core/macro";
import { NativeSelect } from "@mantine/core";

export interface ClusterChoiceProps {
  names: string[];
  cluster: string;
  choose: (name: string) => void;
}

export function ClusterChoice({ names, cluster, choose }: ClusterChoiceProps) {
  if (names.length < 2) return null;
  return (
    <NativeSelect
      label={t`In the cluster`}
      data={names}
      value={cluster}
      onChange={(event) => choose(event.currentTarget.value)}
    />
  );
}
