/** Plans to begin with: one for each kind of change. Names are those of the reader's cluster to fill in. */
import { t } from "@lingui/core/macro";

export interface Example {
  label: string;
  plan: string;
}

export const examples = (): Example[] => [
  {
    label: t`A node fails`,
    plan: `nodes:
- lose: NODE
`,
  },
  {
    label: t`Nodes are added`,
    plan: `nodes:
- add: 4
  like: NODE
`,
  },
  {
    label: t`A node is drained`,
    plan: `nodes:
- drain: NODE
`,
  },
  {
    label: t`A device is cordoned`,
    plan: `nodes:
- cordon: NODE
  device: UUID
`,
  },
  {
    label: t`A quota changes`,
    plan: `apply:
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: ClusterQueue
  metadata: {name: QUEUE}
  spec:
    namespaceSelector: {}
    resourceGroups:
    - coveredResources: [cpu]
      flavors:
      - name: FLAVOR
        resources: [{name: cpu, nominalQuota: 100}]
`,
  },
  {
    label: t`A queue gets other sharing and preemption policies`,
    plan: `patch:
- kind: ClusterQueue
  metadata: {name: QUEUE}
  spec:
    fairSharing: {weight: 2}
    preemption: {withinClusterQueue: LowerPriority}
`,
  },
  {
    label: t`A cohort gets another sharing policy`,
    plan: `patch:
- kind: Cohort
  metadata:
    name: COHORT
    annotations: {kueueweb.io/sharing-policy: proportion}
`,
  },
  {
    label: t`Nodes are kept free for maintenance`,
    plan: `apply:
- apiVersion: kueueweb.io/v1
  kind: Reservation
  metadata: {name: repair}
  spec:
    start: 2030-01-07T08:00:00Z
    end: 2030-01-07T12:00:00Z
    nodes: {names: [NODE]}
    ifBusy: Evict
`,
  },
  {
    label: t`A job is submitted`,
    plan: `apply:
- apiVersion: batch/v1
  kind: Job
  metadata:
    name: train
    namespace: NAMESPACE
    labels: {kueue.x-k8s.io/queue-name: QUEUE}
  spec:
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: pytorch/pytorch
          resources: {limits: {nvidia.com/gpu: 1}}
`,
  },
  {
    label: t`Workloads end`,
    plan: `end:
- NAMESPACE/WORKLOAD
`,
  },
  {
    label: t`A workload gets another priority`,
    plan: `priorities:
- workload: NAMESPACE/WORKLOAD
  class: CLASS
`,
  },
  {
    label: t`A queue is deleted`,
    plan: `delete:
- kind: ClusterQueue
  metadata: {name: QUEUE}
`,
  },
  {
    label: t`Another placement policy`,
    plan: `policies: {node: fgd, device: binpack}
`,
  },
];
