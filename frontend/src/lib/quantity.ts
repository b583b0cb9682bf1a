/**
 * Kubernetes quantities ("500m", "10Gi") and amounts: numbers in base units, cpu in milli and everything else in whole
 * units (memory in bytes). The twin of scheduling/model/quantity.py; both are tested with tests/quantity_vectors.json.
 */

import { t } from "@lingui/core/macro";
import { numbers } from "./language";

const NANOS = 10n ** 9n;
const SUFFIXES: Record<string, bigint> = {
  n: 1n,
  u: 10n ** 3n,
  m: 10n ** 6n,
  "": NANOS,
  k: 10n ** 3n * NANOS,
  M: 10n ** 6n * NANOS,
  G: 10n ** 9n * NANOS,
  T: 10n ** 12n * NANOS,
  P: 10n ** 15n * NANOS,
  E: 10n ** 18n * NANOS,
  Ki: 2n ** 10n * NANOS,
  Mi: 2n ** 20n * NANOS,
  Gi: 2n ** 30n * NANOS,
  Ti: 2n ** 40n * NANOS,
  Pi: 2n ** 50n * NANOS,
  Ei: 2n ** 60n * NANOS,
};
const QUANTITY = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]{1,3})|([a-zA-Z]*))$/;
const BINARY: [string, number][] = [
  ["Ei", 2 ** 60],
  ["Pi", 2 ** 50],
  ["Ti", 2 ** 40],
  ["Gi", 2 ** 30],
  ["Mi", 2 ** 20],
  ["Ki", 2 ** 10],
];

/** Amounts of this size and above mean "no limit". */
const UNLIMITED = 2n ** 63n - 1n;

export class InvalidQuantity extends Error {}

function divideUp(numerator: bigint, denominator: bigint): bigint {
  const quotient = numerator / denominator;
  return numerator > 0n && numerator % denominator !== 0n ? quotient + 1n : quotient;
}

function parseNanos(text: string): bigint {
  const match = QUANTITY.exec(text.trim());
  const [, sign = "", whole = "", fraction = "", exponentText, suffix = ""] = match ?? [];
  const unit = SUFFIXES[suffix];
  if (match === null || whole + fraction === "" || unit === undefined) {
    throw new InvalidQuantity(
      t`"${text}" is not a quantity: write a number with an optional suffix, like 500m, 2 or 10Gi`,
    );
  }
  const exponent = Number(exponentText ?? 0);
  const grow = exponent > 0 ? 10n ** BigInt(exponent) : 1n;
  const shrink = exponent < 0 ? 10n ** BigInt(-exponent) : 1n;
  const nanos = divideUp(BigInt(whole + fraction) * unit * grow, 10n ** BigInt(fraction.length) * shrink);
  return sign === "-" ? -nanos : nanos;
}

/** The quantity as a number in base units of the resource, rounded up; throws InvalidQuantity. */
export function parseAmount(resource: string, text: string): number {
  const amount = divideUp(parseNanos(text), resource === "cpu" ? 10n ** 6n : NANOS);
  return Number(amount > UNLIMITED ? UNLIMITED : amount);
}

/** Whether amounts of the resource are bytes. */
function isBytes(resource: string): boolean {
  return /^(memory|ephemeral-storage|storage|hugepages-.*)$/.test(resource);
}

const IN_MIB = /gpumem$|-memory$|vmem/;

/** Whether amounts of the resource are shown in GiB. */
export function isBinary(resource: string): boolean {
  return isBytes(resource) || IN_MIB.test(resource);
}

// For people: rounded, with units

const whole = numbers({ maximumFractionDigits: 0 });
const threeDigits = numbers({ maximumSignificantDigits: 3 });

/** "317 / 768 GiB": the used amount in the unit of the total, where both have one. */
export function formatAmountOf(resource: string, used: number, total: number): string {
  return oneUnit(formatAmountShort(resource, used), formatAmountShort(resource, total));
}

/** "12 / 32 GiB" of device memory. */
export function formatMibOf(used: number, total: number): string {
  return oneUnit(formatMib(used), formatMib(total));
}

function oneUnit(usedText: string, totalText: string): string {
  const unit = / \D+$/.exec(totalText)?.[0];
  const same = unit !== undefined && usedText.endsWith(unit);
  return `${same ? usedText.slice(0, -unit.length) : usedText} / ${totalText}`;
}

function short(value: number): string {
  return Math.abs(value) >= 100 ? whole(value) : threeDigits(value);
}

/** Bytes to people: "24 GiB". */
export function formatBytes(bytes: number): string {
  for (const [suffix, factor] of BINARY) {
    if (Math.abs(bytes) >= factor) return `${short(bytes / factor)} ${suffix}B`;
  }
  return `${whole(bytes)} B`;
}

/** MiB, as HAMi counts device memory, to people: "512 MiB", "31.3 GiB". */
export function formatMib(mib: number): string {
  return mib === 0 ? "0 GiB" : formatBytes(mib * 2 ** 20);
}

export function formatCount(count: number): string {
  return whole(count);
}

/** "42 %"; an empty total gives a dash, for a share of nothing is not 0 %. */
export function formatShare(used: number, total: number): string {
  return total > 0 ? `${threeDigits(Math.round((used / total) * 1000) / 10)} %` : "–";
}

/** An amount in base units to people, with its unit where it has one: "1.5 cores", "24 GiB", "300 %". */
export function formatAmountShort(resource: string, amount: number): string {
  if (amount >= Number(UNLIMITED)) return t`no limit`;
  if (resource === "cpu") return short(amount / 1000);
  if (isBytes(resource)) return amount === 0 ? "0 GiB" : formatBytes(amount);
  if (IN_MIB.test(resource)) return formatMib(amount);
  if (/gpucores$|percentage$/.test(resource)) return `${short(amount)} %`;
  return whole(amount);
}
