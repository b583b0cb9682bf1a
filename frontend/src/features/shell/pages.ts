/** The pages that a reader may open, with the key that follows g to go there. */
import { t } from "@lingui/core/macro";
import { isClusterAdmin, mayAudit } from "@/api/session";
import type { Session } from "@/api/types";
import type { IconName } from "@/components/icon";

export interface Page {
  to:
    | "/"
    | "/workloads"
    | "/queues"
    | "/gpus"
    | "/nodes"
    | "/flavors"
    | "/flows"
    | "/reservations"
    | "/decisions"
    | "/reports"
    | "/what-if"
    | "/accuracy"
    | "/shadow"
    | "/cluster"
    | "/audit"
    | "/users"
    | "/notifications";
  label: string;
  icon: IconName;
  key: string;
  /** The header or another page leads there, not the menu. */
  outsideMenu?: boolean;
}

export function pagesOf(session: Session, shadowed: boolean): Page[] {
  const admin = isClusterAdmin(session);
  const audits = mayAudit(session);
  return [
    { to: "/", label: t`Overview`, icon: "overview", key: "o" },
    { to: "/workloads", label: t`Workloads`, icon: "workloads", key: "w" },
    { to: "/flows", label: t`Flows`, icon: "flows", key: "j" },
    { to: "/queues", label: t`Queues`, icon: "queues", key: "q" },
    { to: "/gpus", label: t`GPUs`, icon: "gpus", key: "g" },
    { to: "/nodes", label: t`Nodes`, icon: "nodes", key: "n" },
    { to: "/flavors", label: t`Flavors`, icon: "flavors", key: "f" },
    { to: "/reservations", label: t`Reservations`, icon: "clock", key: "v" },
    { to: "/decisions", label: t`Decisions`, icon: "decisions", key: "d" },
    { to: "/reports", label: t`Reports`, icon: "reports", key: "r" },
    { to: "/what-if", label: t`What if`, icon: "question", key: "i" },
    { to: "/accuracy", label: t`Accuracy of estimated starts`, icon: "reports", key: "e", outsideMenu: true },
    ...(shadowed ? [{ to: "/shadow", label: t`Shadow`, icon: "decisions", key: "s" } as const] : []),
    ...(admin ? [{ to: "/cluster", label: t`Cluster`, icon: "nodes", key: "c" } as const] : []),
    ...(audits
      ? [
          { to: "/audit", label: t`Audit`, icon: "audit", key: "a" } as const,
          { to: "/users", label: t`Users`, icon: "users", key: "u" } as const,
        ]
      : []),
    { to: "/notifications", label: t`Notifications`, icon: "bell", key: "b", outsideMenu: true },
  ];
}
