// kube-rbac-proxy stands for the sidecar of that name: TLS on --secure-listen-address with a certificate that it makes
// for itself, handing every request on to --upstream.
//
// It does not: authenticate or authorize anybody, so it proves nothing about who may read metrics.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"flag"
	"log"
	"math/big"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

func main() {
	listen := flag.String("secure-listen-address", ":8443", "address and port")
	upstream := flag.String("upstream", "http://127.0.0.1:8080/", "where requests go")
	flag.Bool("logtostderr", true, "taken and ignored")
	flag.Int("v", 0, "taken and ignored")
	flag.Parse()
	target, err := url.Parse(*upstream)
	if err != nil {
		log.Fatal(err)
	}
	certificate, err := selfSigned()
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Addr: *listen, Handler: httputil.NewSingleHostReverseProxy(target),
		ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}}}
	log.Printf("kube-rbac-proxy stand-in on %s for %s", *listen, target)
	log.Fatal(server.ListenAndServeTLS("", ""))
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	subject := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-rbac-proxy"},
		DNSNames: []string{"localhost"}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, subject, subject, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
