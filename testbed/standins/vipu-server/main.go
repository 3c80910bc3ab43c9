// vipu-server stands for the V-IPU server's presence on the fabric: a TCP listener on port 8090, IPv4 and IPv6, that
// answers any HTTP request with a small JSON health text.
//
// It does not: speak V-IPU's gRPC protocol, authenticate, or know partitions (the stand-in of the IPU operator's proxy
// counts those itself).
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"
)

func main() {
	listen := flag.String("listen", ":8090", "address and port")
	flag.Parse()
	server := &http.Server{Addr: *listen, ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintln(w, `{"status":"ok","version":"1.18.0"}`)
		})}
	log.Printf("V-IPU server stand-in on %s", *listen)
	log.Fatal(server.ListenAndServe())
}
