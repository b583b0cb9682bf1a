/** What may be wrong with a cluster: labels and meaning, defined here and nowhere else. */
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
      label: t`Not heard`,
      meaning: t`The watcher does not answer: changes in the cluster are not seen.`,
    },
    KueueDecides: {
      label: t`A Kueue decides`,
      meaning: t`A Kueue decides in the cluster too: nothing is pushed there while it does.`,
    },
    OtherKueueweb: {
      label: t`Another kueueweb`,
      meaning: t`Another installation of kueueweb pushes to the cluster: this one writes nothing meanwhile.`,
    },
    PushLags: {
      label: t`Behind`,
      meaning: t`Decisions of more than a minute ago were not written to the cluster yet.`,
    },
    PushRefused: {
      label: t`Decisions refused`,
      meaning: t`The cluster refuses decisions; the workloads say why.`,
    },
  }) satisfies Record<string, ProblemWords>;
