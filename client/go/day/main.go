// Command day does a tenant's and an admin's work of a day, with the client alone: go run ./day URL
//
// The server needs the users alice (an admin) and dora, with their names and "-secret" as passwords, a LocalQueue
// "queue" in the namespace "team" for the ClusterQueue "main" with 10 cpu of the flavor "cpus", and a running scheduler.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	kueueweb "kueueweb.io/client"
)

const (
	many      = 300
	namespace = "team"
	role      = kueueweb.YAML(`
apiVersion: kueueweb.io/v1
kind: RoleBinding
metadata: {name: dora}
spec: {user: dora, role: submitter, namespace: team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 100
`)
	job = kueueweb.YAML(`
apiVersion: batch/v1
kind: Job
metadata: {name: previewed, namespace: team, labels: {kueue.x-k8s.io/queue-name: queue}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
`)
)

// day is the state of the program: the clients of its two users.
type day struct {
	ctx           context.Context
	admin, tenant *kueueweb.Client
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	d := &day{ctx: ctx, admin: logIn(ctx, os.Args[1], "alice")}
	must(d.admin.ManifestsCreate(ctx, role, nil))
	d.tenant = logIn(ctx, os.Args[1], "dora")
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"submissions", d.submissions},
		{"life", d.life},
		{"waiting", d.waiting},
		{"quota", d.quota},
		{"reports", d.reports},
	} {
		began := time.Now()
		part.run()
		fmt.Printf("%s: %.1fs\n", part.name, time.Since(began).Seconds())
	}
}

func logIn(ctx context.Context, address, user string) *kueueweb.Client {
	client := kueueweb.New(address, "")
	made := must(client.AuthToken(ctx, kueueweb.TokenCredentialsRequest{Username: user, Password: user + "-secret"}))
	return kueueweb.New(address, made.Token)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(holds bool, text string, found ...any) {
	if !holds {
		panic(fmt.Sprint(text, ": ", found))
	}
}

func refusedWith[T any](_ T, err error) int {
	var refused *kueueweb.Error
	check(errors.As(err, &refused), "a refusal is expected", err)
	return refused.Status
}

func workload(prefix, cpu string) kueueweb.WorkloadInputRequest {
	return kueueweb.WorkloadInputRequest{
		Namespace:    namespace,
		GenerateName: kueueweb.Ptr(prefix),
		LocalQueue:   kueueweb.Ptr("queue"),
		PodSets: []kueueweb.PodSetInputRequest{
			{Count: kueueweb.Ptr[int64](1), Requests: map[string]string{"cpu": cpu}},
		},
	}
}

func (d *day) submit(prefix, cpu string) string {
	return must(d.tenant.WorkloadsCreate(d.ctx, workload(prefix, cpu), nil)).Workloads[0].Name
}

func (d *day) submissions() {
	d.submit("one-", "100")
	batch := make([]kueueweb.WorkloadInputRequest, many)
	for index := range batch {
		batch[index] = workload("many-", "100")
	}
	check(len(must(d.tenant.WorkloadsCreate(d.ctx, batch, nil)).Workloads) == many, "all are stored")

	var header http.Header
	key := kueueweb.IdempotencyKey("day-1")
	first := must(d.tenant.WorkloadsCreate(d.ctx, workload("keyed-", "100"), nil, key)).Workloads[0]
	again := must(d.tenant.WorkloadsCreate(d.ctx, workload("keyed-", "100"), nil, key, kueueweb.AnswerHeader(&header)))
	check(first == again.Workloads[0] && header.Get("Idempotency-Replayed") == "true", "the first answer", again, header)
	other := refusedWith(d.tenant.WorkloadsCreate(d.ctx, workload("other-", "100"), nil, key))
	check(other == http.StatusConflict, "another body with the key", other)

	keys := []kueueweb.KeyRequest{{Namespace: namespace, Name: "never-was"}}
	for row, err := range d.tenant.WorkloadsAll(d.ctx, kueueweb.WorkloadsListParams{Namespace: namespace, Limit: 100}) {
		must(row, err)
		keys = append(keys, kueueweb.KeyRequest{Namespace: row.Namespace, Name: row.Name})
	}
	check(len(keys) == many+3, "the pages have all", len(keys))
	check(must(d.tenant.WorkloadsCountsRetrieve(d.ctx, nil)).Total == many+2, "the counts")
	done := must(d.tenant.WorkloadsCancelMany(d.ctx, kueueweb.KeysRequest{Workloads: keys}, nil))
	check(len(done.Changed) == many+2, "all are cancelled", len(done.Changed))
	check(len(done.Skipped) == 1 && done.Skipped[0].Reason == "NotFound", "one is missing", done.Skipped)
	params := kueueweb.WorkloadsListParams{Namespace: namespace, Status: []string{"Pending", "Admitted"}}
	check(len(must(d.tenant.WorkloadsList(d.ctx, &params)).Results) == 0, "none is left")
}

func (d *day) life() {
	name := d.submit("life-", "100")
	state := must(d.tenant.WorkloadsExplanationRetrieve(d.ctx, namespace, name, nil)).State
	check(state == kueueweb.WaitStateEnumCannotStart, "it asks for too much", state)
	check(!must(d.tenant.WorkloadsHold(d.ctx, namespace, name, nil)).Active, "it is held")
	check(refusedWith(d.tenant.WorkloadsHold(d.ctx, namespace, name, nil)) == http.StatusConflict, "held once")
	must(d.tenant.WorkloadsRelease(d.ctx, namespace, name, nil))
	class := kueueweb.PriorityInputRequest{PriorityClass: kueueweb.Ptr("high")}
	check(must(d.tenant.WorkloadsPriority(d.ctx, namespace, name, class, nil)).Priority == 100, "the class's priority")
	number := kueueweb.PriorityInputRequest{Priority: kueueweb.Ptr[int64](5)}
	check(refusedWith(d.tenant.WorkloadsPriority(d.ctx, namespace, name, number, nil)) == http.StatusForbidden, "numbers")
	must(d.tenant.WorkloadsCancel(d.ctx, namespace, name, nil))
	reasons := map[string]bool{}
	for event, err := range d.tenant.WorkloadsEventsAll(d.ctx, namespace, name, kueueweb.WorkloadsEventsListParams{}) {
		reasons[must(event, err).Reason] = true
	}
	check(reasons["Created"] && reasons["Finished"], "its events", reasons)
	check(refusedWith(d.tenant.WorkloadsRetrieve(d.ctx, namespace, "never-was", nil)) == http.StatusNotFound, "missing")
}

// waiting follows a workload from its submission to its end.
func (d *day) waiting() {
	name := d.submit("wait-", "1")
	found := must(d.tenant.WaitForWorkload(d.ctx, namespace, name, kueueweb.WorkloadStatusEnumAdmitted))
	check(found.ClusterQueue == "main", "it is admitted", found)
	ended := make(chan error)
	go func() {
		_, err := d.tenant.WaitForWorkload(d.ctx, namespace, name, kueueweb.WorkloadStatusEnumFinished)
		ended <- err
	}()
	finished := kueueweb.FinishRequest{
		Workloads: []kueueweb.KeyRequest{{Namespace: namespace, Name: name}},
		Reason:    kueueweb.Ptr(kueueweb.FinishReasonEnumFailed),
	}
	must(d.tenant.WorkloadsFinishMany(d.ctx, finished, nil))
	err := <-ended
	check(errors.Is(err, kueueweb.ErrEnded), "the watch reports its failure", err)
}

func (d *day) quota() {
	var header http.Header
	queue := must(d.admin.ClusterQueuesRetrieve(d.ctx, "main", nil, kueueweb.AnswerHeader(&header)))
	nominal := queue.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota
	check(nominal == "10", "its quota", nominal)
	tag := kueueweb.IfMatch(header.Get("ETag"))
	change := kueueweb.PatchedChangedQuotasInFlavorRequest{
		Resources: map[string]kueueweb.ChangedQuotaAmountsRequest{"cpu": {NominalQuota: kueueweb.Ptr("12")}},
	}
	dry := &kueueweb.ClusterQueuesQuotasPartialUpdateParams{DryRun: kueueweb.Ptr(true)}
	must(d.admin.ClusterQueuesQuotasPartialUpdate(d.ctx, "main", "cpus", change, dry, tag))
	must(d.admin.ClusterQueuesQuotasPartialUpdate(d.ctx, "main", "cpus", change, nil, tag))
	stale := refusedWith(d.admin.ClusterQueuesQuotasPartialUpdate(d.ctx, "main", "cpus", change, nil, tag))
	check(stale == http.StatusPreconditionFailed, "a stale tag", stale)
	tenants := refusedWith(d.tenant.ClusterQueuesQuotasPartialUpdate(d.ctx, "main", "cpus", change, nil))
	check(tenants == http.StatusForbidden, "a tenant", tenants)
	weight := map[string]any{"fair_weight": nil}
	must(d.admin.ClusterQueuesPartialUpdate(d.ctx, "main", weight, nil))
	groups := map[string]any{"resource_groups": queue.ResourceGroups}
	untagged := refusedWith(d.admin.ClusterQueuesPartialUpdate(d.ctx, "main", groups, nil))
	check(untagged == http.StatusPreconditionRequired, "without a tag", untagged)

	manifest := must(d.admin.ManifestsRetrieve(d.ctx, "clusterqueue", "main", nil))
	applied := must(d.admin.ManifestsCreate(d.ctx, manifest, nil)).Objects
	check(len(applied) == 1 && applied[0].Outcome == "unchanged", "its manifest", applied)
	params := kueueweb.AuditListParams{Kind: "ClusterQueue", Name: "main", Verb: []string{"update"}}
	for record, err := range d.admin.AuditAll(d.ctx, params) {
		check(must(record, err).Username == "alice", "who changed it", record)
	}
}

func (d *day) reports() {
	for _, kind := range []string{"waits", "usage", "idle", "preemptions"} {
		must(d.admin.ReportsRetrieve(d.ctx, kind, nil))
	}
	must(d.admin.HistoryRetrieve(d.ctx, &kueueweb.HistoryRetrieveParams{Metric: []string{"admitted"}}))
	previewed := must(d.tenant.Preview(d.ctx, job, nil)).Workloads
	check(len(previewed) == 1 && previewed[0].Explanation.State == "FitsNow", "the preview", previewed)
}
