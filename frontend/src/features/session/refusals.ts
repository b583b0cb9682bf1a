/** Why a login by the OpenID Connect provider failed: the reason in the address is a word, never a text of others. */
import { t } from "@lingui/core/macro";

const messages = (): Map<string, string> =>
  new Map([
    ["Cancelled", t`The login was cancelled at the provider.`],
    ["Deactivated", t`Your account is disabled. Ask a kueueweb admin.`],
    [
      "InvalidAnswer",
      t`The provider's answer was not valid for this login: it may have expired, or it belongs to another login. Try again.`,
    ],
    ["InvalidName", t`kueueweb cannot use the user name that the provider sent. Ask a kueueweb admin.`],
    ["NameTaken", t`Another account already has your user name. A kueueweb admin can link the two.`],
    ["Throttled", t`Too many logins from your address. Try again in a minute.`],
    [
      "Unreachable",
      t`The login provider does not answer properly. Try again in a moment, or ask a kueueweb admin.`,
    ],
  ]);

export function refusalMessage(reason: string): string {
  return messages().get(reason) ?? t`The login failed for an unknown reason.`;
}
