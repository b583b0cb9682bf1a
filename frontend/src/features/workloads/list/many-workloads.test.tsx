import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "@/api/client";
import { actOnMany, collectWorkloads, divide } from "./many-workloads";

const key = (name: string, namespace = "a") => ({ namespace, name });
const many = (count: number) => Array.from({ length: count }, (_, place) => key(`w-${place}`));

/** A server: what it is asked, in its order, and what it answers. */
function serve(
  answerTo: (request: { url: URL; body: { workloads: unknown[] } }) => [number, unknown],
): URL[] {
  const asked: URL[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    const url = new URL(request.url);
    asked.push(url);
    const text = await request.text();
    const [status, body] = answerTo({ url, body: text === "" ? { workloads: [] } : JSON.parse(text) });
    return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  });
  return asked;
}

const progress = () => ({
  signal: new AbortController().signal,
  onProgress: vi.fn<(count: number) => void>(),
});

afterEach(() => {
  vi.unstubAllGlobals();
});

it("collects page by page, with the same filters on each", async () => {
  const asked = serve(({ url }) => {
    const after = url.searchParams.get("after");
    const results = [{ uid: after ?? "first", namespace: "a", name: after ?? "first", state: "Pending" }];
    return [200, { results, next: after === null ? "second" : null }];
  });
  const hooks = progress();
  const found = await collectWorkloads("default", { state: "Pending", last: "1h" }, hooks);
  expect(found).toEqual([
    { uid: "first", namespace: "a", name: "first" },
    { uid: "second", namespace: "a", name: "second" },
  ]);
  expect(hooks.onProgress.mock.calls).toEqual([[1], [2]]);
  const [first, second] = asked.map(({ searchParams }) => searchParams);
  expect(first?.get("state")).toBe("Pending");
  expect(first?.get("ordering")).toBe("-id");
  expect(first?.get("since")).toMatch(/Z$/);
  expect(second?.get("since")).toBe(first?.get("since"));
});

it("acts in batches, counts what was done and names what was not", async () => {
  let batches = 0;
  serve(({ body }) => {
    batches += 1;
    if (batches === 2) return [503, { reason: "Unavailable", message: "Try later.", errors: [] }];
    const [first, ...others] = body.workloads;
    return [
      200,
      { changed: others, skipped: [{ ...(first as object), reason: "Conflict", message: "It has ended." }] },
    ];
  });
  const hooks = progress();
  const result = await actOnMany("default", { kind: "hold" }, many(1001), hooks);
  expect([result.asked, result.changed, result.untried]).toEqual([1001, 499, 0]);
  expect(result.skipped.map(({ name, why }) => [name, why])).toEqual([
    ["w-0", "It has ended."],
    ["w-1000", "It has ended."],
  ]);
  expect(result.failed).toHaveLength(500);
  expect(result.failed[0]).toEqual({ ...key("w-500"), why: "Try later." });
  expect(hooks.onProgress.mock.calls).toEqual([[500], [1000], [1001]]);
});

it("stops between two batches", async () => {
  const stopper = new AbortController();
  serve(({ body }) => [200, { changed: body.workloads, skipped: [] }]);
  const onProgress = () => stopper.abort();
  const result = await actOnMany("default", { kind: "cancel" }, many(1200), {
    signal: stopper.signal,
    onProgress,
  });
  expect([result.changed, result.untried]).toEqual([500, 700]);
});

it("leaves out those that a batch was refused for, and acts on the others", async () => {
  serve(({ body }) => {
    const foreign = body.workloads.some((each) => (each as { name: string }).name === "hers");
    if (!foreign) return [200, { changed: body.workloads, skipped: [] }];
    const error = {
      document: 0,
      path: "name",
      value: "a/hers",
      rule: "was submitted by eve",
      remedy: "",
      reason: "",
    };
    return [403, { reason: "NotPermitted", message: "Nothing was saved.", errors: [error] }];
  });
  const result = await actOnMany("default", { kind: "hold" }, [key("mine"), key("hers")], progress());
  expect(result.changed).toBe(1);
  expect(result.failed).toEqual([{ ...key("hers"), why: "was submitted by eve" }]);
});

describe("a batch that was refused whole", () => {
  const refusal = (status: number) => new ApiError(status, "NotPermitted", "No role there.");

  it("is tried again namespace by namespace where rights are lacking", () => {
    const batch = [key("x", "a"), key("y", "b"), key("z", "a")];
    const rest = [[key("x", "a"), key("z", "a")], [key("y", "b")]];
    expect(divide(batch, refusal(403))).toEqual({ failed: [], rest });
  });

  it("has failed where nothing tells its workloads apart", () => {
    const failed = [{ ...key("x"), why: "No role there." }];
    expect(divide([key("x")], refusal(403))).toEqual({ failed, rest: [] });
    expect(divide([key("x", "a"), key("y", "b")], refusal(500)).failed).toHaveLength(2);
  });
});
