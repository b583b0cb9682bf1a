/** How the list looks: what it is grouped by, and which columns it has. It stands in the URL. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import { isKey } from "@/lib/list/columns";
import {
  isPlainGroup,
  labelOfGroup,
  PLAIN_GROUPS,
  type PlainGroup,
  type WorkloadGroup,
  type WorkloadView,
} from "@/lib/url/workload-filters";
import { ColumnChooser } from "./column-chooser";

const plainGroupWords = (): Record<PlainGroup, string> => ({
  state: t`Status`,
  namespace: t`Namespace`,
  cluster_queue: t`ClusterQueue`,
  local_queue: t`LocalQueue`,
  priority_class: t`Priority class`,
  reason: t`Reason`,
  submitted_by: t`Submitted by`,
  node: t`Node`,
});

export function groupWords(group: WorkloadGroup): string {
  return isPlainGroup(group) ? plainGroupWords()[group] : t`Label ${labelOfGroup(group)}`;
}

const ASK = "label:";

export interface ViewBarProps {
  view: WorkloadView;
  onView: (view: WorkloadView) => void;
}

export function ViewBar({ view, onView }: ViewBarProps) {
  const [asks, setAsks] = useState(false);
  const { group, ...others } = view;
  return (
    <Group gap="xs">
      <NativeSelect
        aria-label={t`Group by`}
        size="xs"
        w={150}
        value={asks ? ASK : (group ?? "")}
        data={[
          { value: "", label: t`No groups` },
          ...PLAIN_GROUPS.map((each) => ({ value: each, label: t`By ${groupWords(each)}` })),
          ...(group === undefined || isPlainGroup(group)
            ? []
            : [{ value: group, label: t`By label ${labelOfGroup(group)}` }]),
          { value: ASK, label: t`By a label …` },
        ]}
        onChange={(event) => {
          const chosen = event.currentTarget.value;
          setAsks(chosen === ASK);
          if (chosen === ASK) return;
          const plain = PLAIN_GROUPS.find((known) => known === chosen);
          onView(plain === undefined ? others : { ...others, group: plain });
        }}
      />
      {asks && (
        <LabelKey
          onChoose={(key) => {
            setAsks(false);
            onView({ ...others, group: `label:${key}` });
          }}
        />
      )}
      <ColumnChooser view={view} onView={onView} />
    </Group>
  );
}

function LabelKey({ onChoose }: { onChoose: (key: string) => void }) {
  const [key, setKey] = useState("");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isKey(key.trim())) onChoose(key.trim());
      }}
    >
      <Group gap={4} wrap="nowrap">
        <TextInput
          size="xs"
          w={130}
          aria-label={t`Key of the label to group by`}
          placeholder={t`Key`}
          spellCheck={false}
          autoFocus
          value={key}
          onChange={(event) => setKey(event.currentTarget.value)}
        />
        <Button type="submit" size="xs" px={8} disabled={!isKey(key.trim())}>
          <Trans>Group</Trans>
        </Button>
      </Group>
    </form>
  );
}
