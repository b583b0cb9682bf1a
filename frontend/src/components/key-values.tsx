/** Small facts of an object: labels, taints and conditions. */
import { Table, Text } from "@mantine/core";
import type { ReactNode } from "react";

/** Names and what they are, one per line. */
export function KeyValues({ rows }: { rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <Table fz="sm" verticalSpacing={6} horizontalSpacing="md" layout="auto">
      <Table.Tbody>
        {rows.map(([name, value]) => (
          // A node may have two taints of one key.
          <Table.Tr key={`${name} ${typeof value === "string" ? value : ""}`}>
            <Table.Td c="var(--kw-muted)" style={{ overflowWrap: "anywhere" }}>
              <Breakable name={name} />
            </Table.Td>
            <Table.Td style={{ overflowWrap: "anywhere" }}>{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

/** A name such as kubernetes.io/hostname, which may break after its prefix rather than within a word. */
function Breakable({ name }: { name: string }) {
  const [prefix = "", ...rest] = name.split("/");
  if (rest.length === 0) return name;
  return (
    <>
      {prefix}/<wbr />
      {rest.join("/")}
    </>
  );
}

export interface TaintText {
  key?: unknown;
  value?: unknown;
  effect?: unknown;
}

/** "gpu=on:NoSchedule", as kubectl writes it. */
export function taintWords({ key = "", value = "", effect = "" }: TaintText): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}

/** Beside its key: "on:NoSchedule", or the effect alone. */
export function taintRest({ value = "", effect = "" }: TaintText): string {
  return value === "" ? String(effect) : `${value}:${effect}`;
}

/** The text in place of an empty list. */
export function NoneOf({ children }: { children: ReactNode }) {
  return (
    <Text fz="sm" c="var(--kw-muted)" px="md" pb="md">
      {children}
    </Text>
  );
}
