/** The vendors' words for a device, its parts and its cores; an unknown word is shown as it comes. */
import { t } from "@lingui/core/macro";

export function deviceWord(word: string): string {
  return word === "device" ? t`device` : word;
}

export function partsWord(word: string): string {
  const known: Record<string, string> = {
    slots: t`slots`,
    slices: t`slices`,
    "MIG instances": t`MIG instances`,
    "DRS slices": t`DRS slices`,
  };
  return known[word] ?? word;
}

export function coresWord(word: string): string {
  const known: Record<string, string> = {
    cores: t`cores`,
    "AI cores": t`AI cores`,
    "compute units": t`compute units`,
  };
  return known[word] ?? word;
}

/** The model in a type of HAMi's, which puts "NVIDIA-" before it, also where the model begins with the vendor. */
export function deviceModel(type: string): string {
  return type.replace(/^(\w+)-(?=\1\b)/, "").replace(/^NVIDIA-/, "");
}
