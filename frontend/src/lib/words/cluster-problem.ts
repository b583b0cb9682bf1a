/** The possible problems of a cluster: labels and meaning, defined here and nowhere else. */
import { t } from "@lingui/core/macro";

interface ProblemWords {
  label: string;
  meaning: string;
}

/** By the stable reasons of the API. */
export const clusterProblems = () =>
  ({
    NoScheduler: { label: t`No scheduler`, meaning: t`No scheduler leads: nothing is decided.` },
    WatcherSilent: {
      label: t`Watcher silent`,
      meaning: t`The watcher does not answer: changes in the cluster go unnoticed.`,
    },
    KueueDecides: {
      label: t`Kueue also decides`,
      meaning: t`Kueue also decides in this cluster: kueueweb pushes nothing there until Kueue stops.`,
    },
    OtherKueueweb: {
      label: t`Another kueueweb`,
      meaning: t`Another installation of kueueweb pushes to the cluster: this installation writes nothing meanwhile.`,
    },
    PushLags: {
      label: t`Push delayed`,
      meaning: t`Decisions have been waiting for more than a minute to be written to the cluster.`,
    },
    PushRefused: {
      label: t`Decisions refused`,
      meaning: t`The cluster refuses decisions; the workloads' pages show the reasons.`,
    },
  }) satisfies Record<string, ProblemWords>;
