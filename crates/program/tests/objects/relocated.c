// Types as vmlinux.h declares them, every access with a CO-RE relocation: those of the context and of headers change nothing.
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
#define __VMLINUX_H__

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct xdp_md {
	__u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct ethhdr {
	__u8 h_dest[6], h_source[6];
	__u16 h_proto;
} __attribute__((packed));

struct iphdr {
	__u8 ihl : 4, version : 4, tos;
	__u16 tot_len, id, frag_off;
	__u8 ttl, protocol;
	__u16 check;
	__u32 saddr, daddr;
};
#pragma clang attribute pop

#define SEC(name) __attribute__((section(name), used))

SEC("xdp")
int ttl(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end || eth->h_proto != 8)
		return 1;
	return ip->ttl + (ip->protocol << 8) + (ctx->rx_queue_index << 16);
}
