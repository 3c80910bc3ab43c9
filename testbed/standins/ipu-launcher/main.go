// ipu-launcher stands for the image of a launcher's init container, which waits for the workers, asks for the partition
// and brings kubectl. The stand-in of the controller does the first two before it makes the launcher, so this puts the
// real kubectl, which lies in its image, where the launcher finds it.
//
// It does not: wait, download a kubectl, or write the script and the list of hosts, which come as a ConfigMap.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
)

const (
	source = "/usr/local/bin/kubectl"
	target = "/opt/kube/kubectl"
)

func main() {
	if err := copyProgram(source, target); err != nil {
		log.Fatal(err)
	}
	fmt.Println("workers are ready, the partition is there")
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}
