package main

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
)

// ipPool is the part of an IPPool that the stand-in reads.
type ipPool struct {
	Spec   poolSpec `json:"spec"`
	Status struct {
		Allocations []allocation `json:"allocations"`
	} `json:"status"`
}

type poolSpec struct {
	Subnet           string       `json:"subnet"`
	PerNodeBlockSize int          `json:"perNodeBlockSize"`
	Gateway          string       `json:"gateway"`
	DefaultGateway   bool         `json:"defaultGateway"`
	Exclusions       []span       `json:"exclusions"`
	Routes           []route      `json:"routes"`
	NodeSelector     nodeSelector `json:"nodeSelector"`
}

type span struct {
	StartIP string `json:"startIP"`
	EndIP   string `json:"endIP"`
}

type route struct {
	Dst string `json:"dst"`
}

type allocation struct {
	NodeName string `json:"nodeName"`
	StartIP  string `json:"startIP"`
	EndIP    string `json:"endIP"`
}

type nodeSelector struct {
	Terms []struct {
		MatchExpressions []struct {
			Key      string   `json:"key"`
			Operator string   `json:"operator"`
			Values   []string `json:"values"`
		} `json:"matchExpressions"`
	} `json:"nodeSelectorTerms"`
}

// matches is true for every node when there are no terms; terms are ORed, the expressions of a term are ANDed.
func (s nodeSelector) matches(labels map[string]string) bool {
	for _, term := range s.Terms {
		all := len(term.MatchExpressions) > 0
		for _, e := range term.MatchExpressions {
			value, present := labels[e.Key]
			switch e.Operator {
			case "In":
				all = all && present && slices.Contains(e.Values, value)
			case "NotIn":
				all = all && !slices.Contains(e.Values, value)
			case "Exists":
				all = all && present
			case "DoesNotExist":
				all = all && !present
			default:
				all = false
			}
		}
		if all {
			return true
		}
	}
	return len(s.Terms) == 0
}

// block is a range of addresses, both ends included.
type block struct{ first, last netip.Addr }

func (b block) contains(a netip.Addr) bool { return !a.Less(b.first) && !b.last.Less(a) }

// allocateBlocks gives each node the block that it has already, or the first free one. Nodes for which none is left get nothing.
func allocateBlocks(spec poolSpec, existing []allocation, nodes []string, skipExcluded bool) ([]allocation, error) {
	subnet, err := netip.ParsePrefix(spec.Subnet)
	if err != nil || subnet != subnet.Masked() || spec.PerNodeBlockSize < 1 {
		return nil, fmt.Errorf("invalid subnet %q or block size %d", spec.Subnet, spec.PerNodeBlockSize)
	}
	gateway, err := optionalAddr(spec.Gateway)
	if err != nil || gateway.IsValid() && !subnet.Contains(gateway) {
		return nil, fmt.Errorf("invalid gateway %q", spec.Gateway)
	}
	exclusions, err := spans(spec.Exclusions)
	if err != nil {
		return nil, err
	}
	has := map[string]allocation{}
	taken := map[netip.Addr]bool{}
	for _, a := range existing {
		first, err := netip.ParseAddr(a.StartIP)
		last, err2 := netip.ParseAddr(a.EndIP)
		fits := err == nil && err2 == nil && subnet.Contains(first) && last == skip(first, spec.PerNodeBlockSize-1)
		if fits && slices.Contains(nodes, a.NodeName) && !(skipExcluded && covered(block{first, last}, exclusions)) {
			has[a.NodeName], taken[first] = a, true
		}
	}
	var allocated []allocation
	next := subnet.Addr().Next()
	for _, node := range nodes {
		if a, ok := has[node]; ok {
			allocated = append(allocated, a)
			continue
		}
		for ; ; next = nextBlock(next, spec.PerNodeBlockSize, exclusions, skipExcluded) {
			b := block{next, skip(next, spec.PerNodeBlockSize-1)}
			if !b.first.IsValid() || !b.last.IsValid() || !subnet.Contains(b.last) || b.last == broadcast(subnet) {
				return allocated, nil
			}
			if !taken[b.first] && !(skipExcluded && covered(b, exclusions)) &&
				!(spec.PerNodeBlockSize == 1 && b.first == gateway) {
				allocated = append(allocated, allocation{node, b.first.String(), b.last.String()})
				taken[b.first] = true
				break
			}
		}
	}
	return allocated, nil
}

// nextBlock is where the next block starts: right behind this one, or, as half an IPv6 subnet may be excluded, behind all
// blocks that lie in the same exclusion.
func nextBlock(start netip.Addr, size int, exclusions []block, skipExcluded bool) netip.Addr {
	next := skip(start, size)
	last := skip(next, size-1)
	for _, e := range exclusions {
		if skipExcluded && last.IsValid() && e.contains(next) && e.contains(last) {
			whole := new(big.Int).Sub(number(e.last), number(next))
			whole.Div(whole.Add(whole, big.NewInt(1)), big.NewInt(int64(size)))
			sum := whole.Add(whole.Mul(whole, big.NewInt(int64(size))), number(next))
			if sum.BitLen() > next.BitLen() {
				return netip.Addr{}
			}
			next, _ = netip.AddrFromSlice(sum.FillBytes(make([]byte, next.BitLen()/8)))
			return next
		}
	}
	return next
}

func number(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }

// pick is the first address after last, round the block, that is neither taken nor the gateway nor excluded.
func pick(own block, last, gateway netip.Addr, exclusions []block, taken map[netip.Addr]bool) (netip.Addr, error) {
	for i, a := range exclusions {
		for _, b := range exclusions[:i] {
			if a.contains(b.first) || b.contains(a.first) {
				return netip.Addr{}, fmt.Errorf("invalid exclusion range config: %v and %v overlap", a, b)
			}
		}
	}
	start := own.first
	if own.contains(last) && last != own.last {
		start = last.Next()
	}
	for address, begun := start, false; address != start || !begun; begun = true {
		excluded := slices.ContainsFunc(exclusions, func(e block) bool { return e.contains(address) })
		if !taken[address] && address != gateway && !excluded {
			return address, nil
		}
		if address == own.last {
			address = own.first
		} else {
			address = address.Next()
		}
	}
	return netip.Addr{}, errors.New("no free addresses in the allocated range")
}

// covered says whether every address of a block is excluded.
func covered(b block, exclusions []block) bool {
	for address := b.first; ; {
		i := slices.IndexFunc(exclusions, func(e block) bool { return e.contains(address) })
		if i < 0 {
			return false
		}
		if address = exclusions[i].last.Next(); !address.IsValid() || b.last.Less(address) {
			return true
		}
	}
}

func spans(list []span) ([]block, error) {
	var blocks []block
	for _, s := range list {
		first, err := netip.ParseAddr(s.StartIP)
		last, err2 := netip.ParseAddr(s.EndIP)
		if err != nil || err2 != nil || last.Less(first) {
			return nil, fmt.Errorf("invalid exclusion %s-%s", s.StartIP, s.EndIP)
		}
		blocks = append(blocks, block{first, last})
	}
	return blocks, nil
}

func optionalAddr(text string) (netip.Addr, error) {
	if text == "" {
		return netip.Addr{}, nil
	}
	return netip.ParseAddr(text)
}

// skip goes n addresses further; the result is invalid past the end of the address space.
func skip(a netip.Addr, n int) netip.Addr {
	raw := a.AsSlice()
	for i, carry := len(raw)-1, n; i >= 0 && carry > 0; i-- {
		sum := int(raw[i]) + carry
		raw[i], carry = byte(sum), sum>>8
	}
	b, _ := netip.AddrFromSlice(raw)
	if b.Less(a) {
		return netip.Addr{}
	}
	return b
}

// broadcast is the last address of an IPv4 subnet; IPv6 has none.
func broadcast(p netip.Prefix) netip.Addr {
	if p.Addr().Is6() || p.Bits() >= 31 {
		return netip.Addr{}
	}
	return skip(p.Masked().Addr(), 1<<(32-p.Bits())-1)
}
