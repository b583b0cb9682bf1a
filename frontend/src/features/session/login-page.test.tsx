import { screen } from "@testing-library/react";
import { describe, expect, it } from "vitest";
import { renderPart } from "@/test-render";
import { LoginPage } from "./login-page";
import { refusalMessage } from "./refusals";

const PROVIDER = { text: "Log in with Acme", url: "/oidc/login/" };

function render(methods: { password: boolean; provider: typeof PROVIDER | null }, refused?: string) {
  return renderPart(
    <LoginPage
      methods={methods}
      refused={refused}
      accounts={[]}
      target="/queues?cluster=west"
      onLogin={() => {}}
    />,
  );
}

describe("the login page", () => {
  it("leads to the provider and back to where the user was going", async () => {
    await render({ password: true, provider: PROVIDER });
    const link = screen.getByRole("link", { name: "Log in with Acme" });
    expect(link.getAttribute("href")).toBe("/oidc/login/?next=%2Fqueues%3Fcluster%3Dwest");
    expect(screen.getByLabelText(/User name/)).toBeTruthy();
  });

  it("has no form where local accounts are switched off", async () => {
    await render({ password: false, provider: PROVIDER });
    expect(screen.queryByLabelText(/User name/)).toBeNull();
  });

  it("has no button where there is no provider", async () => {
    await render({ password: true, provider: null });
    expect(screen.queryByRole("link")).toBeNull();
  });

  it("says why the provider's login failed", async () => {
    await render({ password: true, provider: PROVIDER }, "Deactivated");
    expect(screen.getByRole("alert").textContent).toContain("disabled");
  });

  it("shows no text that an address brings", () => {
    expect(refusalMessage("Call +1 555 to unlock")).not.toContain("555");
    expect(refusalMessage("constructor")).toBe(refusalMessage("?"));
  });
});
