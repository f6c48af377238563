/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the forwarders of this folder have in common: where the headers are, and checksums that follow what they cover.
 *
 * The router has validated a packet's headers before a forwarder sees it: version, lengths, and the checksum of IPv4. What is
 * checked here is what has to be so that no byte beyond the packet is touched.
 */
#ifndef FORWARDER_H
#define FORWARDER_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <longwire.h>

#define DATA(ctx) ((void *)(long)(ctx)->data)
#define END(ctx) ((void *)(long)(ctx)->data_end)

/* The Ethernet header's last field, in one load: struct ethhdr is packed, and read byte by byte. */
#define ETHERTYPE(data) (((__be16 *)(data))[6])

/* Fields of the IPv4 header: version and length, flags and offset of fragments (RFC 791, section 3.1). */
#define IPV4_PLAIN 0x45
#define IPV4_OFFSET 0x1fff
#define IPV4_MORE 0x2000

/* The headers of TCP and UDP as far as forwarders touch them (RFC 9293, section 3.1; RFC 768). */
struct tcp {
	__be16 source, destination;
	__be32 sequence, acknowledgement;
	__u8 offset, flags;
	__be16 window, check, urgent;
};

struct udp {
	__be16 source, destination, length, check;
};

enum { FIN = 0x01, SYN = 0x02, RST = 0x04, ACK = 0x10 };

/* What is no protocol: the packet is not IP; its headers of IPv6 end nowhere, or are more than the router walks over. */
enum { NO_IP = 0x100, UNSEEN = 0x101 };

/* Where the header after IP's begins, in bytes from the frame's beginning, and its protocol; 0 if it is not in this packet, or the packet is a
 * fragment of a kind that is not wanted: one with any of these bits in the field that says so. Its protocol is told even so, if it can be.
 *
 * Of IPv6, the router looks for it behind other headers than those of TCP and UDP.
 */
static __always_inline __u32 header(struct xdp_md *ctx, void *data, void *end, __u16 unwanted, __u32 *protocol)
{
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	struct iphdr *ip = data + ETH_HLEN;
	__s32 found;

	*protocol = NO_IP;
	if ((void *)(ip + 1) > end)
		return 0;
	if (ETHERTYPE(data) == bpf_htons(ETH_P_IP)) {
		*protocol = ip->protocol;
		if (ip->frag_off & bpf_htons(unwanted))
			return 0;
		return ETH_HLEN + (*(__u8 *)ip & 15) * 4;
	}
	if (ETHERTYPE(data) != bpf_htons(ETH_P_IPV6))
		return 0;
	// It lies within the length of an IPv4 header.
	*protocol = ip6->nexthdr;
	if (*protocol == IPPROTO_TCP || *protocol == IPPROTO_UDP)
		return ETH_HLEN + sizeof(*ip6);
	found = lw_transport(ctx);
	*protocol = found & 0xff;
	if (found < 1 << 16) {
		if (found < 0)
			*protocol = UNSEEN;
		return 0;
	}
	if (unwanted & IPV4_MORE && found & LW_FRAGMENT)
		return 0;
	return found >> 16;
}

/* Of all packets but later fragments. */
static __always_inline __u32 transport(struct xdp_md *ctx, void *data, void *end, __u32 *protocol)
{
	return header(ctx, data, end, IPV4_OFFSET, protocol);
}

/* Of packets that are no fragments. */
static __always_inline __u32 whole(struct xdp_md *ctx, void *data, void *end, __u32 *protocol)
{
	return header(ctx, data, end, IPV4_OFFSET | IPV4_MORE, protocol);
}

enum { SOURCE, DESTINATION };

/* Copies an address of a packet that `transport` has found a header in: of IPv4 as ::ffff:a.b.c.d (RFC 4291, section 2.5.5.2). */
static __always_inline void address(void *data, void *end, int side, __be32 words[4])
{
	struct ipv6hdr *ip6 = data + ETH_HLEN;
	struct iphdr *ip = data + ETH_HLEN;
	__be32 *from = (__be32 *)(side == SOURCE ? &ip6->saddr : &ip6->daddr);

	words[0] = words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	if (ETHERTYPE(data) == bpf_htons(ETH_P_IP)) {
		if ((void *)(ip + 1) <= end)
			words[3] = side == SOURCE ? ip->saddr : ip->daddr;
	} else if ((void *)(ip6 + 1) <= end) {
		words[0] = from[0];
		words[1] = from[1];
		words[2] = from[2];
		words[3] = from[3];
	}
}

/* A multiple of 0xffff, and so nothing to a sum in one's complement; more than 63 words of 32 bits together. */
#define NOTHING (0xffffull << 22)

/* The checksum of what has this sum, which is positive and below 2^39. */
static __always_inline __be16 folded(__u64 sum)
{
	// Below 2^39; 2^24; 2^16 + 2^8; 2^16.
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* The checksum after what it covers has changed by `difference`: the sum of the new words, of 16 or 32 bits, less the sum of
 * those that they replace, at most 63 (RFC 1624, equation 3).
 */
static __always_inline __be16 adjusted(__be16 check, __u64 difference)
{
	return folded((__u16)~check + NOTHING + difference);
}

/* A window of TCP as another scale has it: shifted to the left by so many bits as the lower half says, or to the right, by those of the
 * upper half. Of what is too much, as much as can be said.
 */
static __always_inline __be16 scaled(__be16 window, __u16 shifts)
{
	__u32 room = (__u32)bpf_ntohs(window) << (shifts & 15) >> (shifts >> 8 & 15);

	return bpf_htons(room > 0xffff ? 0xffff : room);
}

#endif
