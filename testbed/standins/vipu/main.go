// vipu stands for Graphcore's V-IPU command: it answers `vipu --server-version [--showjson]` the way its mode says.
//
// The mode is the first line of /etc/vipu-standin/mode; key=value lines may follow (host, host6, name, port, version).
// Without host= the address is the one in /etc/vipu-standin/address.
//
//	json       JSON with --showjson, text without it      ipv6         as json, the host is host6 in brackets
//	text       text, whatever was asked for               hostname     as json, the host is name
//	localhost  as json, the host is localhost             garbage      neither JSON nor the text form
//	hanging    no answer, ever                            unreachable  an error and exit code 1
//
// A server that is named by -H, --config, VIPU_CLI_API_HOST or /etc/vipu/vipu-cli.hcl and is not the one of the file
// must accept a connection, else the answer is as in mode unreachable.
//
// It does not: know any other command, log in, speak V-IPU's protocol, or read anything of a configuration file but
// api-host and api-port. (Mode `missing` is the testbed's: it takes this command away.)
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"time"
)

const (
	directory  = "/etc/vipu-standin"
	configFile = "/etc/vipu/vipu-cli.hcl"
)

func main() { os.Exit(run(os.Args[1:], directory, os.Stdout, os.Stderr)) }

func run(arguments []string, directory string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("vipu", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var host, port, config string
	flags.StringVar(&host, "H", "", "the V-IPU server")
	flags.StringVar(&host, "api-host", "", "the V-IPU server")
	flags.StringVar(&port, "api-port", "", "its port")
	flags.StringVar(&config, "config", "", "a configuration file")
	flags.String("api-user-id", "", "taken and ignored")
	flags.String("api-access-key", "", "taken and ignored")
	serverVersion := flags.Bool("server-version", false, "print the server's version and address")
	showJSON := flags.Bool("showjson", false, "print JSON")
	if err := flags.Parse(arguments); err != nil {
		return 2
	}
	if !*serverVersion {
		fmt.Fprintln(stderr, "vipu stand-in: only --server-version is known here")
		return 2
	}
	mode, values, err := readMode(directory)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}
	asked, err := askedServer(host, port, config)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	server := net.JoinHostPort(values["host"], values["port"])
	switch {
	case mode == "hanging":
		time.Sleep(24 * time.Hour)
	case mode == "unreachable":
		return unreachable(stderr, either(asked, server), "context deadline exceeded")
	case mode == "garbage":
		fmt.Fprintln(stdout, "Segmentation fault (core dumped) \x1b[31m{host: ]")
		return 0
	case asked != "" && asked != server:
		connection, err := net.DialTimeout("tcp", asked, 5*time.Second)
		if err != nil {
			return unreachable(stderr, asked, err.Error())
		}
		connection.Close()
		server = asked
	}
	shown := map[string]string{"ipv6": values["host6"], "hostname": values["name"], "localhost": "localhost"}[mode]
	if shown != "" {
		server = net.JoinHostPort(shown, values["port"])
	}
	if *showJSON && mode != "text" {
		text, _ := json.MarshalIndent(map[string]string{"host": server, "version": values["version"]}, "", "  ")
		fmt.Fprintln(stdout, string(text))
	} else {
		fmt.Fprintf(stdout, "version: %s\nhost: %s\n", values["version"], server)
	}
	return 0
}

func unreachable(stderr io.Writer, server, why string) int {
	fmt.Fprintf(stderr, "error: failed to connect to the V-IPU server at %s: %s\n", server, why)
	return 1
}

func readMode(directory string) (string, map[string]string, error) {
	values := map[string]string{"host": "127.0.0.1", "port": "8090", "version": "1.18.0",
		"host6": "fd00:5::20", "name": "vipu-server"}
	if raw, err := os.ReadFile(directory + "/address"); err == nil {
		values["host"] = strings.TrimSpace(string(raw))
		if strings.Contains(values["host"], ":") {
			values["host6"] = values["host"]
		}
	}
	raw, err := os.ReadFile(directory + "/mode")
	if err != nil {
		return "", nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	for _, line := range lines[1:] {
		if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			values[key] = value
		}
	}
	return strings.TrimSpace(lines[0]), values, nil
}

var (
	setting = regexp.MustCompile(`(?m)^\s*(api-host|api-port)\s*=\s*"?([^"\n]*?)"?\s*$`)
	hasPort = regexp.MustCompile(`^(\[.+\]|[^:]+):\d+$`)
)

// askedServer is the server that the user wants, as host:port, or nothing.
func askedServer(host, port, config string) (string, error) {
	host = either(host, os.Getenv("VIPU_CLI_API_HOST"))
	raw, err := os.ReadFile(either(config, configFile))
	if err != nil && config != "" {
		return "", err
	}
	for _, match := range setting.FindAllStringSubmatch(string(raw), -1) {
		if match[1] == "api-host" {
			host = either(host, match[2])
		} else {
			port = either(port, match[2])
		}
	}
	if host == "" || hasPort.MatchString(host) {
		return host, nil
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), either(port, "8090")), nil
}

func either(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
