// mpi-operator stands for Kubeflow's MPI operator 0.8.2, as far as MPIJobs of Open MPI need it: a Service, a host file, an
// ssh key and worker pods for each job, a launcher Job once the workers are ready (or at once), suspension, the job's
// conditions, and the clean-up of workers when it is over. A faulty job gets an event and nothing else, like there.
//
// It does not: know Intel MPI or MPICH, run the launcher as a worker, schedule gangs, keep discover_hosts.sh up to date
// for elastic jobs, evict, export metrics, or elect leaders. Its image of Open MPI is ours, on Debian's packages.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"

	"ipu.fabric/standins/internal/kube"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	mpiJobs = schema.GroupVersionResource{Group: "kubeflow.org", Version: "v2beta1", Resource: "mpijobs"}
	jobs    = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
)

func main() {
	flag.Bool("alsologtostderr", false, "taken and ignored")
	flag.String("lock-namespace", "", "taken and ignored")
	flag.Parse()
	client, err := kube.Client(os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	log.Print("MPI operator stand-in")
	o := &operator{client: client, said: map[string]string{}}
	kube.Run(ctx, client, o.reconcile, mpiJobs, jobs, kube.Pods)
}
