/** Changes of an object in words: quotas by their resource and flavor, everything else by its path. */
import { t } from "@lingui/core/macro";
import { type Change, pathText } from "@/lib/manifest/changes";
import type { Value } from "@/lib/manifest/object";
import { formatAmountShort, InvalidQuantity, parseAmount } from "@/lib/quantity";
import type { AmountField } from "./quota-groups";

export function amountWords(): Record<AmountField, string> {
  return {
    nominalQuota: t`Nominal quota`,
    borrowingLimit: t`Borrowing limit`,
    lendingLimit: t`Lending limit`,
  };
}

export function amountLabel(field: AmountField, resource: string, flavor: string): string {
  return t`${amountWords()[field]} of ${resource}, flavor ${flavor}`;
}

/** "512 GiB" beside 524288 of device memory; empty where it says no more than the quantity itself. */
export function unitWords(resource: string, quantity: string): string {
  try {
    const words = formatAmountShort(resource, parseAmount(resource, quantity));
    return words === quantity ? "" : words;
  } catch (error) {
    if (error instanceof InvalidQuantity) return "";
    throw error;
  }
}

/** Why a text is no quantity; undefined where it is one, or nothing. */
export function quantityFault(resource: string, text: string): string | undefined {
  try {
    if (text !== "") parseAmount(resource, text);
    return undefined;
  } catch (error) {
    if (error instanceof InvalidQuantity) return error.message;
    throw error;
  }
}

export interface ChangeWords {
  key: string;
  label: string;
  before: string;
  after: string;
}

const isAmount = (field: unknown): field is AmountField =>
  field === "nominalQuota" || field === "borrowingLimit" || field === "lendingLimit";

function valueWords(value: Value | undefined, resource: string | null): string {
  if (value === undefined) return t`none`;
  if (typeof value === "object") return JSON.stringify(value);
  const unit = resource === null ? "" : unitWords(resource, String(value));
  return unit === "" ? String(value) : `${value} (${unit})`;
}

/** Fields by the words that their form has for them. */
const fieldWords = (): Record<string, string> => ({
  "spec.cohortName": t`Cohort`,
  "spec.fairSharing.weight": t`Fair weight`,
  "spec.queueingStrategy": t`Queueing strategy`,
  "spec.stopPolicy": t`Stop policy`,
});

/** `whole` is either version: it says which keys of a path are items of a list. */
export function changeWords({ path, before, after }: Change, whole: Value): ChangeWords {
  const [flavors, flavor, resources, resource, field] = path.slice(-5);
  const isQuota = flavors === "flavors" && resources === "resources" && isAmount(field);
  const ofResource = isQuota ? String(resource) : null;
  const key = pathText(path, whole);
  return {
    key,
    label: isQuota ? amountLabel(field, String(resource), String(flavor)) : (fieldWords()[key] ?? key),
    before: valueWords(before, ofResource),
    after: valueWords(after, ofResource),
  };
}
