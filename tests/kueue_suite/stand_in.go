package util

import (
	"context"
	"io"
	"net/http"
	"os"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// The program that decides runs beside the cluster and not in a pod of it, and no pod runs a program. At KUEUE_STAND_IN a POST
// configures it by the ConfigMap of Kueue in the cluster that the path names, and a GET gives its metrics.

func standsIn() bool { return os.Getenv("KUEUE_STAND_IN") != "" }

func askStandIn(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, os.Getenv("KUEUE_STAND_IN")+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func configureStandIn(ctx context.Context, cluster string) {
	ginkgo.GinkgoHelper()
	_, err := askStandIn(ctx, http.MethodPost, cluster)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
}

func metricsOfStandIn(ctx context.Context) (string, error) {
	body, err := askStandIn(ctx, http.MethodGet, "")
	return string(body), err
}

// serverOfContext is the address of a cluster as the kubeconfig of the suite has it.
func serverOfContext(cluster string) string {
	ginkgo.GinkgoHelper()
	found, err := config.GetConfigWithContext("kind-" + cluster)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return found.Host
}

// awaitStandIn returns when the webhooks answer.
func awaitStandIn(ctx context.Context, k8sClient client.Client) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(func(g gomega.Gomega) {
		probe := &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-"}}
		g.Expect(k8sClient.Create(ctx, probe, client.DryRunAll)).To(gomega.Succeed())
	}, LongTimeout, Interval).Should(gomega.Succeed())
}

// terminateInStandIn reports what a kubelet would after the containers have exited.
func terminateInStandIn(
	ctx context.Context, k8sClient client.Client, namespace string, count, exitCode int, opts ...client.ListOption,
) {
	ginkgo.GinkgoHelper()
	opts = append(opts, client.InNamespace(namespace))
	var active []corev1.Pod
	gomega.Eventually(func(g gomega.Gomega) {
		pods := corev1.PodList{}
		g.Expect(k8sClient.List(ctx, &pods, opts...)).To(gomega.Succeed())
		active = active[:0]
		for _, pod := range pods.Items {
			if pod.Status.PodIP != "" && pod.Status.Phase == corev1.PodRunning {
				active = append(active, pod)
			}
		}
		g.Expect(active).To(gomega.HaveLen(count))
	}, LongTimeout, Interval).Should(gomega.Succeed())
	for i := range active {
		pod := &active[i]
		gomega.Eventually(func(g gomega.Gomega) {
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(pod), pod)).To(gomega.Succeed())
			exitContainers(pod, exitCode)
			g.Expect(k8sClient.Status().Update(ctx, pod)).To(gomega.Succeed())
		}, Timeout, Interval).Should(gomega.Succeed())
	}
}

func exitContainers(pod *corev1.Pod, exitCode int) {
	now := metav1.Now()
	phase, reason := corev1.PodSucceeded, "Completed"
	if exitCode != 0 {
		phase, reason = corev1.PodFailed, "Error"
	}
	pod.Status.Phase = phase
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady {
			condition.Status, condition.Reason, condition.LastTransitionTime = corev1.ConditionFalse, "PodCompleted", now
		}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready = false
		status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: int32(exitCode), Reason: reason, StartedAt: now, FinishedAt: now,
		}}
	}
}
