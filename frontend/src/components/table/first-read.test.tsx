import { useQuery } from "@tanstack/react-query";
import { act, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import { useFirstRead } from "@/lib/first-read";
import { renderPart } from "@/test-render";

test("a refusal stays while it is tried again, and goes with the first answer", async () => {
  const tries: { resolve: (text: string) => void; reject: (error: Error) => void }[] = [];
  let again: () => void = () => {};
  function Part() {
    const query = useQuery({
      queryKey: ["part"],
      queryFn: () => new Promise<string>((resolve, reject) => void tries.push({ resolve, reject })),
      retry: false,
    });
    again = () => void query.refetch();
    const { waits, error } = useFirstRead(query);
    return <p>{waits ? "waits" : (error?.message ?? query.data)}</p>;
  }
  await renderPart(<Part />);
  expect(screen.getByText("waits")).toBeTruthy();
  await act(async () => tries[0]?.reject(new Error("no answer")));
  expect(await screen.findByText("no answer")).toBeTruthy();
  await act(async () => again());
  expect(tries).toHaveLength(2);
  expect(screen.getByText("no answer")).toBeTruthy();
  await act(async () => tries[1]?.resolve("here"));
  expect(await screen.findByText("here")).toBeTruthy();
});
