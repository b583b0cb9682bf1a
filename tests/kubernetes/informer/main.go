// Follows objects with client-go's informers and prints their events, one JSON line each.
//
// Usage: informer KUBECONFIG CONTEXT NAMESPACE RESYNC_SECONDS GROUP/VERSION/RESOURCE...
//
// A line on standard input is a command: "cut" closes all connections of the informers, "list" prints the names that
// each informer's store has, "counts" prints the requests sent so far. The end of the input ends the program.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

var printing sync.Mutex

// emit prints one line of JSON.
func emit(line map[string]any) {
	text, _ := json.Marshal(line)
	printing.Lock()
	defer printing.Unlock()
	fmt.Println(string(text))
}

// connections remembers the open connections, so that "cut" can close them.
type connections struct {
	lock sync.Mutex
	open map[net.Conn]struct{}
}

func (all *connections) dial(ctx context.Context, network, address string) (net.Conn, error) {
	made, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		all.lock.Lock()
		all.open[made] = struct{}{}
		all.lock.Unlock()
	}
	return made, err
}

func (all *connections) cut() {
	all.lock.Lock()
	defer all.lock.Unlock()
	for each := range all.open {
		_ = each.Close()
	}
	all.open = map[net.Conn]struct{}{}
}

// requests counts the lists and watches that are sent, and the answers with an error.
type requests struct {
	next http.RoundTripper
	lock sync.Mutex
	sent map[string]int
}

func (all *requests) RoundTrip(request *http.Request) (*http.Response, error) {
	kind := "list"
	if request.URL.Query().Get("watch") == "true" {
		kind = "watch"
	}
	if request.URL.Query().Get("sendInitialEvents") == "true" {
		kind = "watch-list"
	}
	answer, err := all.next.RoundTrip(request)
	all.lock.Lock()
	defer all.lock.Unlock()
	all.sent[kind]++
	if err == nil && answer.StatusCode >= 400 {
		all.sent[fmt.Sprint(answer.StatusCode)]++
	}
	return answer, err
}

func resource(text string) schema.GroupVersionResource {
	parts := strings.Split(text, "/")
	return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
}

func event(kind, resource string, item any) {
	if gone, is := item.(cache.DeletedFinalStateUnknown); is {
		item = gone.Obj
	}
	object := item.(*unstructured.Unstructured)
	emit(map[string]any{
		"event": kind, "resource": resource, "namespace": object.GetNamespace(), "name": object.GetName(),
		"version": object.GetResourceVersion(), "uid": string(object.GetUID()), "status": object.Object["status"],
	})
}

func main() {
	resync, err := strconv.Atoi(os.Args[4])
	if err != nil {
		panic(err)
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: os.Args[1]}
	chosen := &clientcmd.ConfigOverrides{CurrentContext: os.Args[2]}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, chosen).ClientConfig()
	if err != nil {
		panic(err)
	}
	open := &connections{open: map[net.Conn]struct{}{}}
	config.Dial = open.dial
	counted := &requests{sent: map[string]int{}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.next = next
		return counted
	})
	client := dynamic.NewForConfigOrDie(config)
	period := time.Duration(resync) * time.Second
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, period, os.Args[3], nil)
	informers := map[string]cache.SharedIndexInformer{}
	for _, text := range os.Args[5:] {
		name := resource(text).Resource
		informer := factory.ForResource(resource(text)).Informer()
		informers[name] = informer
		_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, fault error) {
			emit(map[string]any{"event": "ERROR", "resource": name, "message": fault.Error()})
		})
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(item any) { event("ADD", name, item) },
			UpdateFunc: func(old, item any) {
				kind := "UPDATE"
				before, after := old.(*unstructured.Unstructured), item.(*unstructured.Unstructured)
				if before.GetResourceVersion() == after.GetResourceVersion() {
					kind = "RESYNC"
				}
				event(kind, name, item)
			},
			DeleteFunc: func(item any) { event("DELETE", name, item) },
		})
	}
	stop := make(chan struct{})
	factory.Start(stop)
	for gvr, synced := range factory.WaitForCacheSync(stop) {
		emit(map[string]any{"event": "SYNCED", "resource": gvr.Resource, "synced": synced})
	}
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		switch input.Text() {
		case "cut":
			open.cut()
			emit(map[string]any{"event": "CUT"})
		case "list":
			for name, informer := range informers {
				keys := informer.GetStore().ListKeys()
				sort.Strings(keys)
				emit(map[string]any{"event": "LIST", "resource": name, "names": keys})
			}
		case "counts":
			counted.lock.Lock()
			emit(map[string]any{"event": "COUNTS", "sent": counted.sent})
			counted.lock.Unlock()
		}
	}
	close(stop)
}
