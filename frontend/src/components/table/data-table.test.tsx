import { cleanup, fireEvent, screen, within } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { useState } from "react";
import { beforeEach, expect, it, vi } from "vitest";
import { NodeLink } from "@/components/object-links";
import { renderPart } from "@/test-render";
import { type DataColumn, DataTable, type DataTableProps } from "./data-table";

interface Row {
  name: string;
}

const COLUMNS: DataColumn<Row>[] = [{ id: "name", header: "Name", cell: ({ row }) => row.original.name }];

function rows(count: number): Row[] {
  return Array.from({ length: count }, (_, place) => ({ name: `row-${place}` }));
}

function Table(props: Partial<DataTableProps<Row>>) {
  return (
    <DataTable
      label="Rows"
      columns={COLUMNS}
      rows={[]}
      rowKey={(row) => row.name}
      empty={<p>Nothing</p>}
      {...props}
    />
  );
}

beforeEach(() => {
  // jsdom lays nothing out; a frame of 400 px shows some ten rows.
  vi.spyOn(Element.prototype, "clientHeight", "get").mockReturnValue(400);
  vi.spyOn(HTMLElement.prototype, "offsetWidth", "get").mockReturnValue(200);
});

it("says what it says when empty, but not while it loads", async () => {
  await renderPart(<Table />);
  expect(screen.getByText("Nothing")).toBeDefined();
});

it("shows no empty message while it loads", async () => {
  await renderPart(<Table loading />);
  expect(screen.queryByText("Nothing")).toBeNull();
  expect(screen.getByRole("table", { name: "Rows" })).toBeDefined();
});

it("puts only the rows in view into the page", async () => {
  await renderPart(<Table rows={rows(5_000)} />);
  expect(screen.getByText("row-0")).toBeDefined();
  expect(screen.getAllByText(/^row-/).length).toBeLessThan(60);
});

it("asks for more when the end is in view, and not before", async () => {
  const onEnd = vi.fn();
  await renderPart(<Table rows={rows(5)} onEnd={onEnd} />);
  expect(onEnd).toHaveBeenCalled();
  const far = vi.fn();
  await renderPart(<Table rows={rows(500)} onEnd={far} />);
  expect(far).not.toHaveBeenCalled();
});

it("walks the rows with arrows or j and k, and opens one with Enter", async () => {
  const onOpen = vi.fn();
  await renderPart(<Table rows={rows(5)} onOpen={onOpen} />);
  const user = userEvent.setup();
  await user.tab(); // the widths of the columns
  await user.tab();
  await user.keyboard("{ArrowDown}jk{ArrowDown}{Enter}");
  expect(onOpen).toHaveBeenCalledExactlyOnceWith({ name: "row-2" });
});

it("selects one row, all rows that are loaded, and none again", async () => {
  function Selecting() {
    const [keys, onChange] = useState<ReadonlySet<string>>(new Set());
    return (
      <>
        <Table rows={rows(3)} selection={{ keys, onChange }} />
        <output>{[...keys].join()}</output>
      </>
    );
  }
  await renderPart(<Selecting />);
  const user = userEvent.setup();
  const chosen = screen.getByRole("status");
  await user.click(within(screen.getByText("row-1").closest("tr") as HTMLElement).getByRole("checkbox"));
  expect(chosen.textContent).toBe("row-1");
  const all = screen.getByRole("checkbox", { name: /Select all/ });
  await user.click(all);
  expect(chosen.textContent).toBe("row-0,row-1,row-2");
  await user.click(all);
  expect(chosen.textContent).toBe("");
});

it("says whose a row is where rows are of several clusters, and its links lead there", async () => {
  const columns: DataColumn<Row>[] = [
    { id: "name", header: "Name", cell: ({ row }) => <NodeLink name={row.original.name} /> },
  ];
  await renderPart(
    <Table columns={columns} rows={rows(2)} clusterOf={({ name }) => (name === "row-0" ? "east" : "west")} />,
  );
  expect(screen.getAllByRole("columnheader").map((head) => head.textContent)).toEqual(["Name", "Cluster"]);
  expect(screen.getAllByRole("link").map((link) => link.getAttribute("href"))).toEqual([
    "/nodes/row-0?cluster=east",
    "/nodes/row-1?cluster=west",
  ]);
});

const TWO_COLUMNS: DataColumn<Row>[] = [
  ...COLUMNS,
  { id: "age", header: "Age", meta: { width: "66px" }, cell: () => "1 h" },
];

it("leaves names and shares of the width their room beside the column of the cluster", async () => {
  const why: DataColumn<Row> = { id: "why", header: "Why", meta: { width: "40%" }, cell: () => "because" };
  await renderPart(<Table columns={[...COLUMNS, why]} rows={rows(2)} clusterOf={() => "east"} />);
  expect(widthOf("Why")).toBe("34%");
  expect(screen.getByRole("table").style.minWidth).toBe("384px");
});

function widthOf(name: string): string {
  return screen.getByRole("columnheader", { name }).style.width;
}

it("makes a column as wide as the reader drags it, and leaves the others as they were on screen", async () => {
  const onWidths = vi.fn();
  function Kept() {
    const [widths, setWidths] = useState<Readonly<Record<string, number>> | undefined>();
    const keep = (next: typeof widths) => {
      onWidths(next);
      setWidths(next);
    };
    return <Table columns={TWO_COLUMNS} rows={rows(2)} widths={widths} onWidths={keep} />;
  }
  await renderPart(<Kept />);
  const [first] = screen.getAllByRole("separator");
  if (first === undefined) throw new Error("no handle");
  first.setPointerCapture = () => {};
  fireEvent.pointerDown(first, { button: 0, clientX: 100, pointerId: 1 });
  fireEvent.pointerMove(first, { clientX: 130, pointerId: 1 });
  expect(widthOf("Name")).toBe("230px");
  expect(onWidths).not.toHaveBeenCalled();
  fireEvent.pointerUp(first, { clientX: 150, pointerId: 1 });
  expect(onWidths).toHaveBeenCalledExactlyOnceWith({ name: 250, age: 200 });
  expect([widthOf("Name"), widthOf("Age")]).toEqual(["250px", "200px"]);
  expect(screen.getByRole("table").style.width).toBe("450px");
});

it("lets go of a drag that the browser takes away, and takes a click for none", async () => {
  const onWidths = vi.fn();
  await renderPart(<Table columns={TWO_COLUMNS} rows={rows(2)} onWidths={onWidths} />);
  const [first] = screen.getAllByRole("separator");
  if (first === undefined) throw new Error("no handle");
  first.setPointerCapture = () => {};
  fireEvent.pointerDown(first, { button: 0, clientX: 100, pointerId: 1 });
  fireEvent.pointerMove(first, { clientX: 400, pointerId: 1 });
  fireEvent.pointerCancel(first, { pointerId: 1 });
  expect(widthOf("Name")).toBe("");
  fireEvent.pointerDown(first, { button: 0, clientX: 100, pointerId: 1 });
  fireEvent.pointerUp(first, { clientX: 100, pointerId: 1 });
  expect(onWidths).not.toHaveBeenCalled();
});

it("has one stop of the tab key for all widths, and arrows lead from one to the next", async () => {
  await renderPart(<Table columns={TWO_COLUMNS} rows={rows(2)} onOpen={() => {}} />);
  const user = userEvent.setup();
  const [name, age] = screen.getAllByRole("separator");
  await user.tab();
  expect(document.activeElement).toBe(name);
  await user.keyboard("{ArrowDown}");
  expect(document.activeElement).toBe(age);
  await user.keyboard("{ArrowDown}{ArrowRight}");
  expect(widthOf("Age")).not.toBe("66px");
  await user.tab();
  expect(document.activeElement).toBe(screen.getByRole("row", { name: /row-0/ }));
  await user.tab({ shift: true });
  expect(document.activeElement).toBe(age);
});

it("changes widths with the arrow keys and goes back to its own with Delete", async () => {
  await renderPart(<Table columns={TWO_COLUMNS} rows={rows(2)} />);
  const user = userEvent.setup();
  const age = screen.getByRole("separator", { description: "Age" });
  age.focus();
  await user.keyboard("{ArrowRight}{Shift>}{ArrowLeft}{/Shift}");
  expect(age.getAttribute("aria-valuenow")).toBe("152");
  expect(widthOf("Age")).toBe("152px");
  await user.keyboard("{Delete}");
  expect(widthOf("Age")).toBe("66px");
});

it("moves the cells that leave a narrow window into a second line, unless the reader hid them", async () => {
  const narrow: DataColumn<Row>[] = [
    ...COLUMNS,
    { id: "why", header: "Why", meta: { hideBelow: 760, width: "40%", below: 1 }, cell: () => "no quota" },
    { id: "cycle", header: "Cycle", meta: { hideBelow: 760, width: "80px" }, cell: () => "cycle 7" },
  ];
  vi.spyOn(window, "matchMedia").mockImplementation(
    (query) =>
      ({
        matches: query.includes("max-width"),
        addEventListener: () => {},
        removeEventListener: () => {},
      }) as unknown as MediaQueryList,
  );
  await renderPart(<Table rows={rows(1)} columns={narrow} />);
  expect(screen.getAllByRole("columnheader").map((head) => head.textContent)).toEqual(["Name"]);
  expect(screen.getByRole("cell").textContent).toBe("row-0no quota");
  cleanup();
  await renderPart(<Table rows={rows(1)} columns={narrow} hidden={["why"]} />);
  expect(screen.getByRole("cell").textContent).toBe("row-0");
});

it("opens a row's page in a new tab with Ctrl, and the row itself where it has no link", async () => {
  const opened = vi.spyOn(window, "open").mockReturnValue(null);
  const onOpen = vi.fn();
  const linked: DataColumn<Row>[] = [
    {
      id: "name",
      header: "Name",
      cell: ({ row }) => (
        <>
          <a href={`/nodes/${row.original.name}`}>{row.original.name}</a> <i>plain</i>
        </>
      ),
    },
  ];
  await renderPart(<Table rows={rows(1)} columns={linked} onOpen={onOpen} />);
  fireEvent.click(screen.getByText("plain"), { ctrlKey: true });
  expect(opened).toHaveBeenCalledWith(expect.stringMatching(/\/nodes\/row-0$/), "_blank", "noopener");
  expect(onOpen).not.toHaveBeenCalled();
  fireEvent.click(screen.getByText("plain"));
  expect(onOpen).toHaveBeenCalledOnce();
  cleanup();
  await renderPart(<Table rows={rows(1)} onOpen={onOpen} />);
  fireEvent.click(screen.getByText("row-0"), { ctrlKey: true });
  expect(onOpen).toHaveBeenCalledTimes(2);
});
