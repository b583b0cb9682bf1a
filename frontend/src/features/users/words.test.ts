import { describe, expect, it } from "vitest";
import { keptBecause, subjectWords, whereWords } from "./words";

describe("a role binding in words", () => {
  it.each([
    [{ in_namespace: "team-a" }, "namespace team-a"],
    [{ in_namespace: "" }, "all namespaces"],
    [{ cohort: "research", in_namespace: "" }, "below cohort research"],
  ])("%o: %s", (binding, words) => {
    expect(whereWords(binding)).toBe(words);
  });

  it("names users and groups", () => {
    expect(subjectWords({ user: "ada", group: "" })).toBe("user ada");
    expect(subjectWords({ user: "", group: "ops" })).toBe("group ops");
  });

  it("says why it stays where this page cannot take it away", () => {
    expect(keptBecause({ name: "binding-1", every_cluster: false })).toBeNull();
    expect(keptBecause({ name: "binding-1", every_cluster: true })).toContain("every cluster");
    expect(keptBecause({ name: "oidc-group-role-1", every_cluster: true })).toContain("OIDC_GROUP_ROLES");
  });
});
