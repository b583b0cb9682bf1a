/** How the list looks: what it is grouped by, and which columns it has. It stands in the URL. */
import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button, Group, Menu, NativeSelect } from "@mantine/core";
import { Icon } from "@/components/icon";
import { WORKLOAD_GROUPS, type WorkloadGroup, type WorkloadView } from "@/lib/url/workload-filters";
import { WORKLOAD_COLUMNS } from "./workload-columns";

export const groupWords = (): Record<WorkloadGroup, string> => ({
  namespace: t`Namespace`,
  cluster_queue: t`ClusterQueue`,
  local_queue: t`LocalQueue`,
  priority_class: t`Priority class`,
  reason: t`Reason`,
  submitted_by: t`Submitted by`,
});

/** The name cannot be left out: by it a row is opened. */
const CHOOSABLE = WORKLOAD_COLUMNS.flatMap(({ id = "", header }) =>
  id === "name" ? [] : [{ id, label: header as () => string }],
);

export function hiddenColumns({ hide = "" }: WorkloadView): string[] {
  return hide.split(",").filter((id) => CHOOSABLE.some((column) => column.id === id));
}

export function ViewBar({ view, onView }: { view: WorkloadView; onView: (view: WorkloadView) => void }) {
  const hidden = hiddenColumns(view);
  const toggle = (id: string) => {
    const next = hidden.includes(id) ? hidden.filter((each) => each !== id) : [...hidden, id];
    const { hide: _, ...others } = view;
    onView(next.length === 0 ? others : { ...others, hide: next.join(",") });
  };
  return (
    <Group gap="xs">
      <NativeSelect
        aria-label={t`Group by`}
        size="xs"
        w={150}
        value={view.group ?? ""}
        data={[
          { value: "", label: t`No groups` },
          ...WORKLOAD_GROUPS.map((group) => ({ value: group, label: t`By ${groupWords()[group]}` })),
        ]}
        onChange={(event) => {
          const group = WORKLOAD_GROUPS.find((known) => known === event.currentTarget.value);
          const { group: _, ...others } = view;
          onView(group === undefined ? others : { ...others, group });
        }}
      />
      <Menu closeOnItemClick={false} position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="xs" leftSection={<Icon name="table" size={14} />}>
            <Trans>Columns</Trans>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {CHOOSABLE.map(({ id, label }) => (
            <Menu.CheckboxItem key={id} checked={!hidden.includes(id)} onChange={() => toggle(id)}>
              {label()}
            </Menu.CheckboxItem>
          ))}
        </Menu.Dropdown>
      </Menu>
    </Group>
  );
}
