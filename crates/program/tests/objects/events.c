// Programs that write records for a control process: through a ringbuf, reserved or copied, and through a perf_event_array.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum kind { NOTHING, DATAGRAM = 3, OTHER };

struct ends {
	__be32 source, destination;
	__be16 ports[2];
};

struct event {
	struct ends ends;
	enum kind kind;
	__u16 length;
	__u8 ttl : 4, hops : 4;
	_Bool fragment;
	char name[8];
	__u8 station[6];
	union {
		__u16 identification;
		__u8 bytes[2];
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 5000);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct ends);
	__type(value, struct event);
} last SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, enum kind);
} kinds SEC(".maps");

__u64 seen;
struct ends latest;

// The headers of a UDP packet over IPv4, or 0.
static __always_inline struct iphdr *datagram(struct xdp_md *ctx, struct udphdr **udp)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *ethernet = data;
	struct iphdr *ip = (void *)(ethernet + 1);

	*udp = (void *)(ip + 1);
	if ((void *)(*udp + 1) > end || ethernet->h_proto != bpf_htons(ETH_P_IP))
		return 0;
	return ip->protocol == IPPROTO_UDP && ip->ihl == 5 ? ip : 0;
}

static __always_inline void fill(struct event *event, struct iphdr *ip, struct udphdr *udp)
{
	event->ends.source = ip->saddr;
	event->ends.destination = ip->daddr;
	event->ends.ports[0] = udp->source;
	event->ends.ports[1] = udp->dest;
	event->kind = DATAGRAM;
	event->length = bpf_ntohs(ip->tot_len);
	event->ttl = ip->ttl & 15;
	event->hops = ip->ttl >> 4;
	event->fragment = !!(ip->frag_off & bpf_htons(0x2000));
	__builtin_memcpy(event->name, "udp", 4);
	__builtin_memcpy(event->station, (void *)ip - 8, 6);
	event->identification = ip->id;
}

SEC("xdp")
int reserved(struct xdp_md *ctx)
{
	struct udphdr *udp;
	struct iphdr *ip = datagram(ctx, &udp);
	struct event *event;

	if (!ip)
		return XDP_PASS;
	event = bpf_ringbuf_reserve(&records, sizeof(*event), 0);
	if (!event)
		return XDP_DROP;
	fill(event, ip, udp);
	// Those to port 9 are nobody's business.
	if (udp->dest == bpf_htons(9))
		bpf_ringbuf_discard(event, 0);
	else
		bpf_ringbuf_submit(event, 0);
	return XDP_PASS;
}

SEC("xdp")
int copied(struct xdp_md *ctx)
{
	struct event event = {};
	struct udphdr *udp;
	struct iphdr *ip = datagram(ctx, &udp);

	if (!ip)
		return XDP_PASS;
	fill(&event, ip, udp);
	bpf_map_update_elem(&last, &event.ends, &event, 0);
	__sync_fetch_and_add(&seen, 1);
	latest = event.ends;
	return bpf_ringbuf_output(&records, &event, sizeof(event), 0) ? XDP_DROP : XDP_PASS;
}

SEC("xdp")
int sampled(struct xdp_md *ctx)
{
	__u32 kind = 0, *known = bpf_map_lookup_elem(&kinds, &kind);
	__u64 length = ctx->data_end - ctx->data;
	__u16 said = length;

	if (known && *known == NOTHING)
		return XDP_PASS;
	if (length > 60)
		length = 60;
	return bpf_perf_event_output(ctx, &samples, BPF_F_CURRENT_CPU | length << 32, &said, sizeof(said)) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
