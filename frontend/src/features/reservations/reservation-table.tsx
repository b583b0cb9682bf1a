/** The reservations of a period: the open or next window of each, its nodes, and for whom they are kept free. */
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Group, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import type { ReservationWindow } from "@/api/hardware/reservations";
import { BadgeDot } from "@/components/badge-dot";
import { Facts } from "@/components/facts";
import { NodeLink, WorkloadNames } from "@/components/object-links";
import { Panel } from "@/components/panel";
import { WideTable } from "@/components/table/wide-table";
import { formatAge, formatTimestamp } from "@/lib/time";
import classes from "./reservations.module.css";
import { allowedTexts, type Reservation, recurrenceText, stateWords, windowText } from "./windows";

interface ReservationTableProps {
  reservations: readonly Reservation[];
  now: number;
  buttons: (name: string) => ReactNode;
}

export function ReservationTable({ reservations, now, buttons }: ReservationTableProps) {
  return (
    <Panel flush>
      <WideTable blocks>
        <Table fz="sm" verticalSpacing={8} horizontalSpacing="md" layout="auto" aria-label={t`Reservations`}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>
                <Trans>Reservation</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>State</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Window</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Nodes</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>Kept free for</Trans>
              </Table.Th>
              <Table.Th>
                <Trans>If busy at the start</Trans>
              </Table.Th>
              <Table.Th />
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {reservations.map(({ name, present }) => (
              <Row key={name} name={name} window={present} now={now} buttons={buttons(name)} />
            ))}
          </Table.Tbody>
        </Table>
      </WideTable>
    </Panel>
  );
}

interface RowProps {
  name: string;
  window: ReservationWindow;
  now: number;
  buttons: ReactNode;
}

function Row({ name, window, now, buttons }: RowProps) {
  return (
    <Table.Tr>
      <Table.Td data-wide>
        <Text fz="sm" fw={550}>
          {name}
        </Text>
        {window.comment !== "" && (
          <Text fz="xs" c="var(--kw-muted)">
            {window.comment}
          </Text>
        )}
      </Table.Td>
      <Table.Td data-label={t`State`} data-wide>
        <StateOfWindow window={window} />
      </Table.Td>
      <Table.Td
        className={classes.whole}
        data-label={t`Window`}
        title={`${formatTimestamp(window.starts_at)} – ${formatTimestamp(window.ends_at)}`}
      >
        {windowText(window)}
        <Text fz="xs" c="var(--kw-muted)">
          {[distance(window, now), recurrenceText(window.recurrence)].filter(Boolean).join(", ")}
        </Text>
      </Table.Td>
      <Table.Td data-label={t`Nodes`} data-wide>
        <Nodes names={window.nodes} />
      </Table.Td>
      <Table.Td data-label={t`Kept free for`} data-wide>
        <Allowed window={window} />
      </Table.Td>
      <Table.Td data-label={t`If busy at the start`}>
        {window.if_busy === "Evict" ? t`evicts` : t`waits`}
      </Table.Td>
      <Table.Td data-none={!buttons || undefined}>
        <Group gap={4} wrap="nowrap" justify="flex-end">
          {buttons}
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

/** How long until the window starts or ends. */
function distance({ state, starts_at, ends_at }: ReservationWindow, now: number): string {
  const until = (at: string) => formatAge((Date.parse(at) - now) / 1000);
  if (state === "Planned") return t`in ${until(starts_at)}`;
  return state === "Ended" ? "" : t`for another ${until(ends_at)}`;
}

function StateOfWindow({ window }: { window: ReservationWindow }) {
  const { label, color, hint } = stateWords()[window.state];
  return (
    <>
      <BadgeDot label={label} color={color} hint={hint} />
      {window.busy_count > 0 && (
        <Text fz="xs" c="var(--kw-muted)" className={classes.busy}>
          <WorkloadNames
            text={plural(window.busy_count, { one: "# workload still runs", other: "# workloads still run" })}
            count={window.busy_count}
            workloads={window.busy.slice(0, MOST_NAMED).map(({ namespace, name }) => `${namespace}/${name}`)}
          />
        </Text>
      )}
    </>
  );
}

const MOST_NAMED = 2;
const MOST_NODES = 3;

function Nodes({ names }: { names: readonly string[] }) {
  if (names.length === 0) return t`none`;
  const more = names.length - MOST_NODES;
  return (
    <span title={names.join(", ")}>
      {names.slice(0, MOST_NODES).map((name, at) => (
        <span key={name} className={classes.whole}>
          {at > 0 && ", "}
          <NodeLink name={name} />
        </span>
      ))}
      {more > 0 && <Trans> and {more} more</Trans>}
    </span>
  );
}

function Allowed({ window }: { window: ReservationWindow }) {
  const texts = allowedTexts(window);
  if (window.maintenance) return <Trans>maintenance</Trans>;
  return texts === null ? <Trans>certain workloads</Trans> : <Facts texts={texts} />;
}
