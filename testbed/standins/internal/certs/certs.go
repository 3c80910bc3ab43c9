// Package certs makes a certificate authority and certificates of it, for stand-ins that need TLS among themselves.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// Pair is a certificate and its key, as PEM.
type Pair struct{ Cert, Key []byte }

// Make gives the certificate of a new authority, and a pair for each subject: a common name and the server's names.
func Make(subjects map[string][]string) (authority []byte, pairs map[string]Pair, err error) {
	ca := template(1, "stand-in")
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage |= x509.KeyUsageCertSign
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, nil, err
	}
	pairs = map[string]Pair{}
	for name, hosts := range subjects {
		leaf := template(int64(len(pairs)+2), name)
		leaf.DNSNames = hosts
		leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		if pairs[name], err = sign(leaf, ca, caKey); err != nil {
			return nil, nil, err
		}
	}
	return encode("CERTIFICATE", der), pairs, nil
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(100, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature}
}

func sign(leaf, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, caKey)
	if err != nil {
		return Pair{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	return Pair{encode("CERTIFICATE", der), encode("EC PRIVATE KEY", keyDER)}, err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
