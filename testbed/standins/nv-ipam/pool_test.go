package main

import (
	"fmt"
	"net/netip"
	"testing"
)

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("n%02d", i))
	}
	return all
}

func TestDeal(t *testing.T) {
	low25 := []span{{"10.5.0.0", "10.5.0.127"}}
	for _, c := range []struct {
		name        string
		spec        poolSpec
		nodes       int
		skip        bool
		allocated   int
		first, last string // start of the first and end of the last block
	}{
		{"starts after the network address", poolSpec{Subnet: "10.5.0.0/24", PerNodeBlockSize: 8}, 2, true, 2, "10.5.0.1", "10.5.0.16"},
		{"stops before the broadcast address", poolSpec{Subnet: "10.5.0.0/24", PerNodeBlockSize: 8}, 99, true, 31, "10.5.0.1", "10.5.0.248"},
		{"excluded blocks are skipped, partly excluded ones are not", poolSpec{Subnet: "10.5.0.0/24", PerNodeBlockSize: 8, Exclusions: low25}, 99, true, 16, "10.5.0.121", "10.5.0.248"},
		{"before 26.1 excluded blocks are allocated", poolSpec{Subnet: "10.5.0.0/24", PerNodeBlockSize: 8, Exclusions: low25}, 99, false, 31, "10.5.0.1", "10.5.0.248"},
		{"16 addresses a node", poolSpec{Subnet: "10.5.0.0/24", PerNodeBlockSize: 16, Exclusions: low25}, 99, true, 8, "10.5.0.113", "10.5.0.240"},
		{"single addresses leave out the gateway", poolSpec{Subnet: "10.5.0.0/29", PerNodeBlockSize: 1, Gateway: "10.5.0.1"}, 9, true, 5, "10.5.0.2", "10.5.0.6"},
		{"IPv6", poolSpec{Subnet: "fd00:5::/64", PerNodeBlockSize: 256}, 2, true, 2, "fd00:5::1", "fd00:5::200"},
		{"half an IPv6 subnet excluded", poolSpec{Subnet: "fd00:5::/64", PerNodeBlockSize: 8, Exclusions: []span{{"fd00:5::", "fd00:5::7fff:ffff:ffff:ffff"}}}, 2, true, 2, "fd00:5::7fff:ffff:ffff:fff9", "fd00:5::8000:0:0:8"},
		{"excluded up to the end", poolSpec{Subnet: "10.5.0.0/24", PerNodeBlockSize: 8, Exclusions: []span{{"10.5.0.9", "10.5.0.255"}}}, 9, true, 1, "10.5.0.1", "10.5.0.8"},
		{"an IPv4 subnet at the end of the address space", poolSpec{Subnet: "255.255.255.0/24", PerNodeBlockSize: 100}, 9, true, 2, "255.255.255.1", "255.255.255.200"},
	} {
		got, err := allocateBlocks(c.spec, nil, names(c.nodes), c.skip)
		if err != nil || len(got) != c.allocated || got[0].StartIP != c.first || got[len(got)-1].EndIP != c.last {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestDealKeepsBlocksAndReusesFreedOnes(t *testing.T) {
	spec := poolSpec{Subnet: "10.5.0.0/24", PerNodeBlockSize: 64}
	before, err := allocateBlocks(spec, nil, []string{"a", "b", "c"}, true)
	if err != nil {
		t.Fatal(err)
	}
	after, err := allocateBlocks(spec, before, []string{"b", "c", "d"}, true)
	if err != nil || len(after) != 3 || after[0] != before[1] || after[1] != before[2] || after[2].StartIP != "10.5.0.1" {
		t.Errorf("%v -> %v, %v", before, after, err)
	}
	spec.PerNodeBlockSize = 32 // blocks of another size do not count
	if got, _ := allocateBlocks(spec, before, []string{"b"}, true); len(got) != 1 || got[0].StartIP != "10.5.0.1" {
		t.Errorf("new size: %v", got)
	}
}

func TestDealRefuses(t *testing.T) {
	for _, spec := range []poolSpec{
		{Subnet: "10.5.0.9/24", PerNodeBlockSize: 8},
		{Subnet: "10.5.0.0/24"},
		{Subnet: "10.5.0.0/24", PerNodeBlockSize: 8, Gateway: "10.6.0.1"},
		{Subnet: "10.5.0.0/24", PerNodeBlockSize: 8, Exclusions: []span{{"10.5.0.9", "10.5.0.1"}}},
	} {
		if got, err := allocateBlocks(spec, nil, names(1), true); err == nil {
			t.Errorf("%+v: %v, want an error", spec, got)
		}
	}
}

func TestPick(t *testing.T) {
	at := netip.MustParseAddr
	own := block{at("10.5.0.1"), at("10.5.0.4")}
	none := netip.Addr{}
	for _, c := range []struct {
		name          string
		last, gateway netip.Addr
		exclusions    []block
		taken         []string
		want          string
	}{
		{"first", none, none, nil, nil, "10.5.0.1"},
		{"not the gateway", none, at("10.5.0.1"), nil, nil, "10.5.0.2"},
		{"after the last one, though lower ones are free", at("10.5.0.2"), none, nil, nil, "10.5.0.3"},
		{"round the end", at("10.5.0.4"), none, nil, nil, "10.5.0.1"},
		{"round the end and past what is taken", at("10.5.0.3"), none, nil, []string{"10.5.0.4", "10.5.0.1"}, "10.5.0.2"},
		{"not an excluded one", none, none, []block{{at("10.5.0.0"), at("10.5.0.3")}}, nil, "10.5.0.4"},
		{"none left", none, at("10.5.0.4"), []block{{at("10.5.0.0"), at("10.5.0.3")}}, nil, ""},
		{"overlapping exclusions", none, none, []block{{at("10.5.0.0"), at("10.5.0.2")}, {at("10.5.0.2"), at("10.5.0.3")}}, nil, ""},
	} {
		taken := map[netip.Addr]bool{}
		for _, a := range c.taken {
			taken[at(a)] = true
		}
		got, err := pick(own, c.last, c.gateway, c.exclusions, taken)
		if c.want == "" && err == nil || c.want != "" && got.String() != c.want {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}
