// Programs that entries of maps name: where a packet leaves, and on a processor.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
	__uint(max_entries, 4);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
	__uint(max_entries, 2);
} processors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__uint(max_entries, 4);
} plain SEC(".maps");

SEC("xdp")
int redirect(struct xdp_md *ctx)
{
	return bpf_redirect_map(&ports, 0, 0);
}

// Redirects by a map, and then does something else.
SEC("xdp")
int hesitant(struct xdp_md *ctx)
{
	bpf_redirect_map(&ports, 0, 0);
	return XDP_PASS;
}

// The last redirection counts.
SEC("xdp")
int elsewhere(struct xdp_md *ctx)
{
	bpf_redirect_map(&ports, 0, 0);
	return bpf_redirect(3, 0);
}

SEC("xdp")
int without(struct xdp_md *ctx)
{
	return bpf_redirect_map(&plain, 0, 0);
}

SEC("xdp")
int lead(struct xdp_md *ctx)
{
	return bpf_redirect_map(&processors, 0, 0);
}

// Writes where the packet has come from and goes to into its source address.
SEC("xdp/devmap")
int stamp(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = (void *)(long)ctx->data;

	if ((void *)(ethernet + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	ethernet->h_source[4] = ctx->ingress_ifindex;
	ethernet->h_source[5] = ctx->egress_ifindex;
	return XDP_PASS;
}

// Makes packets longer by four bytes at their beginning.
SEC("xdp/devmap")
int lengthen(struct xdp_md *ctx)
{
	__u32 *first;

	if (bpf_xdp_adjust_head(ctx, -4))
		return XDP_ABORTED;
	first = (void *)(long)ctx->data;
	if ((void *)(first + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	*first = 0x01010101;
	return XDP_PASS;
}

SEC("xdp/devmap")
int refuse(struct xdp_md *ctx)
{
	return XDP_DROP;
}

// The kernel drops what is sent back from there, or redirected again.
SEC("xdp/devmap")
int back(struct xdp_md *ctx)
{
	return XDP_TX;
}

SEC("xdp/devmap")
int away(struct xdp_md *ctx)
{
	return bpf_redirect_map(&processors, 0, 0);
}

SEC("xdp/cpumap")
int let_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp/cpumap")
int throw_away(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("xdp/cpumap")
int send_back(struct xdp_md *ctx)
{
	return XDP_TX;
}

SEC("xdp/cpumap")
int onward(struct xdp_md *ctx)
{
	return bpf_redirect_map(&ports, 0, 0);
}

SEC("xdp/cpumap")
int around(struct xdp_md *ctx)
{
	return bpf_redirect_map(&processors, 0, 0);
}

// Has chosen no way of its own: that of the program before is not its.
SEC("xdp/cpumap")
int nowhere(struct xdp_md *ctx)
{
	return XDP_REDIRECT;
}

char _license[] SEC("license") = "GPL";
