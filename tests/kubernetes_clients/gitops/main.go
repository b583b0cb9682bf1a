// Brings the objects of a namespace into the state of manifests, as Argo CD does: by its engine.
//
// Usage: gitops KUBECONFIG CONTEXT NAMESPACE MANIFESTS.yaml
//
// It prints each object with the engine's result. Objects of an earlier run that are no longer in the file are pruned.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/argoproj/gitops-engine/pkg/cache"
	"github.com/argoproj/gitops-engine/pkg/diff"
	"github.com/argoproj/gitops-engine/pkg/engine"
	"github.com/argoproj/gitops-engine/pkg/sync"
	"github.com/argoproj/gitops-engine/pkg/utils/kube"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	mark    = "example.com/synced-by"
	program = "gitops"
	minutes = 2
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	config, user, namespace, file := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: config}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: user}
	rest := must(clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig())
	ctx, cancel := context.WithTimeout(context.Background(), minutes*time.Minute)
	defer cancel()

	targets := must(kube.SplitYAML(must(os.ReadFile(file))))
	for _, target := range targets {
		labels := target.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[mark] = program
		target.SetLabels(labels)
	}
	known := cache.NewClusterCache(rest,
		cache.SetLogr(logr.Discard()),
		cache.SetPopulateResourceInfoHandler(func(found *unstructured.Unstructured, _ bool) (any, bool) {
			ours := found.GetLabels()[mark] == program
			return ours, ours
		}))
	ours := engine.NewEngine(rest, known, engine.WithLogr(logr.Discard()))
	stop := must(ours.Run())
	defer stop()
	managed := func(found *cache.Resource) bool {
		is, _ := found.Info.(bool)
		return is
	}

	live := must(known.GetManagedLiveObjs(targets, managed))
	for _, target := range targets {
		found := must(diff.Diff(target, live[kube.GetResourceKey(target)], diff.WithLogr(logr.Discard())))
		fmt.Printf("%s/%s modified=%t\n", target.GetKind(), target.GetName(), found.Modified)
	}
	results := must(ours.Sync(ctx, targets, managed, "1", namespace, sync.WithPrune(true), sync.WithLogr(logr.Discard())))
	for _, result := range results {
		fmt.Printf("%s/%s %s %s\n", result.ResourceKey.Kind, result.ResourceKey.Name, result.Status, result.Message)
	}
}
