import { QueryClient } from "@tanstack/react-query";
import { describe, expect, it, vi } from "vitest";
import { serve } from "@/test-render";
import { ApiError, after, answer, api, send } from "./client";
import { deviceSamplesQuery } from "./devices";
import { workloadSamplesQuery } from "./workloads";

function network(respond: (request: Request) => Response | Promise<Response>): void {
  vi.stubGlobal("fetch", async (request: Request) => respond(request));
}

const session = () => answer(api.GET("/api/v1/session/"));

describe("refusals", () => {
  it("carry the server's reason, sentence and located faults", async () => {
    const fault = {
      document: 0,
      path: "spec.x",
      value: 1,
      rule: "is too small",
      remedy: "raise it",
      reason: "Invalid",
    };
    network(() =>
      Response.json({ reason: "Invalid", message: "It was refused.", errors: [fault] }, { status: 400 }),
    );
    await expect(session()).rejects.toMatchObject({
      status: 400,
      reason: "Invalid",
      message: "It was refused.",
      errors: [fault],
    });
  });

  it("are distinguished: no user is logged in", async () => {
    network(() =>
      Response.json({ reason: "NotAuthenticated", message: "Log in.", errors: [] }, { status: 403 }),
    );
    await expect(session()).rejects.toSatisfy((error: ApiError) => error.isUnauthenticated);
  });

  it("of a proxy, in HTML, still say something", async () => {
    network(() => new Response("<html>oops</html>", { status: 502, statusText: "Bad Gateway" }));
    await expect(session()).rejects.toThrow("The server answered 502 Bad Gateway");
  });

  it("are a sentence when the server does not answer", async () => {
    network(() => {
      throw new TypeError("Failed to fetch");
    });
    await expect(session()).rejects.toMatchObject({ status: 0, reason: "Unreachable" });
  });

  it("are none when the page itself gave up", async () => {
    network(() => {
      throw new DOMException("aborted", "AbortError");
    });
    await expect(session()).rejects.not.toBeInstanceOf(ApiError);
  });
});

it("sends the CSRF token with what changes something, and with nothing else", async () => {
  vi.spyOn(document, "cookie", "get").mockReturnValue("other=1; csrftoken=secret");
  const seen: (string | null)[] = [];
  network((request) => {
    seen.push(request.headers.get("X-CSRFToken"));
    return Response.json({});
  });
  await send(new Request("http://localhost/", { method: "POST" }));
  await send(new Request("http://localhost/"));
  expect(seen).toEqual(["secret", null]);
});

it("asks for a page after a cursor, and for the first without one", () => {
  expect(after("abc")).toEqual({ after: "abc" });
  expect(after(null)).toEqual({});
});

it("what devices and containers used is asked for with nothing that the server refuses", async () => {
  const calls = serve([[/samples/, { body: { results: [] } }]]);
  const queries = new QueryClient();
  await queries.fetchQuery(deviceSamplesQuery("default", "GPU-1"));
  await queries.fetchQuery(workloadSamplesQuery("default", { namespace: "ai", name: "train" }));
  expect(calls).toHaveLength(2);
  const taken = ["cluster", "hours", "resolution"];
  for (const { address } of calls) {
    const names = [...new URLSearchParams(address.split("?")[1]).keys()];
    expect(names.filter((name) => !taken.includes(name))).toEqual([]);
  }
});
