/** Why a login by the OpenID Connect provider failed: the reason in the address is a word, never a text of others. */
import { t } from "@lingui/core/macro";

const messages = (): Map<string, string> =>
  new Map([
    ["Cancelled", t`The login was cancelled at the provider.`],
    ["Deactivated", t`Your account is switched off here. Ask an admin of kueueweb.`],
    [
      "InvalidAnswer",
      t`The provider's answer was not valid for this login: it may have expired, or belong to another one. Try again.`,
    ],
    [
      "InvalidName",
      t`The provider gives you a user name that kueueweb cannot use. Ask an admin of kueueweb.`,
    ],
    ["NameTaken", t`Another account here has your user name. An admin of kueueweb can join the two.`],
    ["Throttled", t`Too many logins from your address. Try again in a minute.`],
    [
      "Unreachable",
      t`The login provider does not answer as it should. Try again in a moment, or ask an admin of kueueweb.`,
    ],
  ]);

export function refusalMessage(reason: string): string {
  return messages().get(reason) ?? t`The login failed for a reason that this page does not know.`;
}
