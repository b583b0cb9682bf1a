/** Why a login by the OpenID Connect provider failed: the reason in the address is a word, never a text of others. */
const UNKNOWN = "The login failed for a reason that this page does not know.";

const MESSAGES = new Map([
  ["Cancelled", "The login was cancelled at the provider."],
  ["Deactivated", "Your account is switched off here. Ask an admin of kueueweb."],
  [
    "InvalidAnswer",
    "The provider's answer was not valid for this login: it may have expired, or belong to another one. Try again.",
  ],
  ["InvalidName", "The provider gives you a user name that kueueweb cannot use. Ask an admin of kueueweb."],
  ["NameTaken", "Another account here has your user name. An admin of kueueweb can join the two."],
  ["Throttled", "Too many logins from your address. Try again in a minute."],
  [
    "Unreachable",
    "The login provider does not answer as it should. Try again in a moment, or ask an admin of kueueweb.",
  ],
]);

export function refusalMessage(reason: string): string {
  return MESSAGES.get(reason) ?? UNKNOWN;
}
