//! Compares segments with packets built by another library.

use etherparse::{
    IpHeaders, IpNumber, Ipv4Header, Ipv6Extensions, Ipv6FlowLabel, Ipv6Header, PacketBuilder,
    SingleVlanHeader, TcpHeader, TcpOptionElement, VlanHeader, VlanId,
};
use longwire_packet::{Checksum, Gso, Handle, Pool};
use longwire_wire::{TrainError, finish_checksum, segment, validate_train};
use proptest::prelude::*;

/// A flow for building trains and their segments.
#[derive(Debug, Clone)]
struct Flow {
    v6: bool,
    tcp: bool,
    tagged: bool,
    options: bool,
    cwr: bool,
    id: u16,
    sequence: u32,
}

impl Flow {
    /// Builds the packet with bytes from `skipped` on, as segment number `index`.
    fn packet(&self, payload: &[u8], index: u16, skipped: usize, is_first: bool, is_last: bool) -> Vec<u8> {
        let step = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let ip = self.ip(index);
        let ip = if self.tagged {
            step.vlan(VlanHeader::Single(SingleVlanHeader {
                vlan_id: VlanId::try_new(5).unwrap(),
                ..Default::default()
            }))
            .ip(ip)
        } else {
            step.ip(ip)
        };
        let mut bytes = Vec::new();
        if !self.tcp {
            ip.udp(1000, 2000).write(&mut bytes, payload).unwrap();
            return bytes;
        }
        let mut tcp = TcpHeader::new(1000, 2000, self.sequence.wrapping_add(skipped as u32), 512);
        (tcp.ack, tcp.acknowledgment_number) = (true, 99);
        (tcp.psh, tcp.fin, tcp.cwr) = (is_last, is_last, is_first && self.cwr);
        if self.options {
            tcp.set_options(&[
                TcpOptionElement::Noop,
                TcpOptionElement::Noop,
                TcpOptionElement::Timestamp(7, 8),
            ])
            .unwrap();
        }
        ip.tcp_header(tcp).write(&mut bytes, payload).unwrap();
        bytes
    }

    fn ip(&self, index: u16) -> IpHeaders {
        if self.v6 {
            let header = Ipv6Header {
                flow_label: Ipv6FlowLabel::try_new(0x12345).unwrap(),
                hop_limit: 63,
                source: [0xfd; 16],
                destination: [0xfe; 16],
                ..Default::default()
            };
            return IpHeaders::Ipv6(header, Ipv6Extensions::default());
        }
        let mut header = Ipv4Header::new(0, 63, IpNumber::TCP, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        header.identification = self.id.wrapping_add(index);
        header.dont_fragment = true;
        IpHeaders::Ipv4(header, Default::default())
    }

    fn kind(&self) -> Gso {
        match (self.tcp, self.v6) {
            (true, false) => Gso::TcpV4,
            (true, true) => Gso::TcpV6,
            (false, _) => Gso::Udp,
        }
    }

    fn train(&self, pool: &mut Pool, payload: &[u8], gso_size: u16) -> Handle {
        let handle = pool.insert(&self.packet(payload, 0, 0, true, true)).unwrap();
        let (meta, frame) = pool.parts_mut(handle);
        meta.checksum = Checksum::Partial as u8;
        (meta.in_port, meta.out_port, meta.path) = (3, 4, 5);
        (meta.arrival, meta.place, meta.seq) = (6, 8, 9);
        meta.set_leave(7);
        validate_train(meta, frame, (self.kind() as u8, gso_size)).unwrap();
        handle
    }

    fn segments(&self, payload: &[u8], gso_size: u16) -> Vec<Vec<u8>> {
        let count = payload.len().div_ceil(usize::from(gso_size));
        let chunks = payload.chunks(usize::from(gso_size)).enumerate();
        chunks
            .map(|(index, chunk)| {
                self.packet(
                    chunk,
                    index as u16,
                    index * usize::from(gso_size),
                    index == 0,
                    index + 1 == count,
                )
            })
            .collect()
    }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Completes the checksum, returns the bytes and frees the packet.
fn finished(pool: &mut Pool, handle: Handle) -> Vec<u8> {
    let (meta, frame) = pool.parts_mut(handle);
    finish_checksum(meta, frame).unwrap();
    let bytes = frame.to_vec();
    pool.free(handle);
    bytes
}

fn flows() -> impl Strategy<Value = Flow> {
    let bits = any::<(bool, bool, bool, bool, bool)>();
    (bits, any::<(u16, u32)>()).prop_map(|((v6, tcp, tagged, options, cwr), (id, sequence))| Flow {
        v6,
        tcp,
        tagged,
        options,
        cwr,
        id,
        sequence,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Every segment equals, byte for byte, the packet that etherparse builds for it, checksums included.
    #[test]
    fn segments_are_the_packets_of_their_own(flow in flows(), len in 1..9000usize, gso_size in 1..3000u16) {
        let gso_size = gso_size.max((len / 200) as u16 + 1);
        let mut pool = Pool::new(1 << 20).unwrap();
        let payload = payload(len);
        let train = flow.train(&mut pool, &payload, gso_size);
        let expected = flow.segments(&payload, gso_size);
        prop_assert_eq!(usize::from(pool.meta(train).segments), expected.len());
        if expected.len() == 1 {
            prop_assert_eq!(pool.meta(train).train(), None);
            return Ok(());
        }
        let header_len = expected[0].len() - usize::from(gso_size);
        prop_assert_eq!(pool.meta(train).train().map(|train| train.header_len.into()), Some(header_len));
        let bytes: usize = expected.iter().map(Vec::len).sum();
        prop_assert_eq!(pool.meta(train).segment_bytes(), bytes as u64);
        let whole = pool.data(train).to_vec();
        for (index, expected) in expected.iter().enumerate() {
            let part = segment(&mut pool, train, index as u16, 1).unwrap();
            let meta = pool.meta(part);
            prop_assert_eq!((meta.segments, meta.train()), (1, None));
            prop_assert_eq!((meta.len, meta.wire_len), (expected.len() as u32, expected.len() as u32));
            prop_assert_eq!((meta.in_port, meta.out_port, meta.path), (3, 4, 5));
            prop_assert_eq!((meta.arrival, meta.leave(), meta.place, meta.seq), (6, 7, 8, 9));
            prop_assert_eq!(&finished(&mut pool, part), expected);
        }
        prop_assert_eq!(pool.data(train), whole);
        prop_assert_eq!(pool.live(), 1);
    }

    /// The segments are the same however a train is first split into shorter ones.
    #[test]
    fn splitting_twice_is_splitting_once(
        flow in flows(),
        len in 2..6000usize,
        gso_size in 40..1500u16,
        cuts in prop::collection::vec(1..20u16, 1..20),
    ) {
        let mut pool = Pool::new(8 << 20).unwrap();
        let payload = payload(len + usize::from(gso_size));
        let train = flow.train(&mut pool, &payload, gso_size);
        let segments = pool.meta(train).segments;
        let mut parts = Vec::new();
        let mut first = 0;
        for cut in cuts.into_iter().cycle() {
            let count = cut.min(segments - first);
            parts.push(segment(&mut pool, train, first, count).unwrap());
            first += count;
            if first == segments {
                break;
            }
        }
        let mut singles = Vec::new();
        for part in parts {
            match pool.meta(part).segments {
                1 => singles.push(finished(&mut pool, part)),
                count => {
                    // The part is itself a train that a driver would accept.
                    let before = *pool.meta(part);
                    let (meta, frame) = pool.parts_mut(part);
                    let claim = meta.train().map(|train| (train.gso, train.gso_size)).unwrap();
                    validate_train(meta, frame, claim).unwrap();
                    prop_assert_eq!(before, *meta);
                    for index in 0..count {
                        let single = segment(&mut pool, part, index, 1).unwrap();
                        singles.push(finished(&mut pool, single));
                    }
                    pool.free(part);
                }
            }
        }
        prop_assert_eq!(singles, flow.segments(&payload, gso_size));
    }
}

const FLOW: Flow = Flow {
    v6: false,
    tcp: true,
    tagged: false,
    options: false,
    cwr: true,
    id: 0xffff,
    sequence: u32::MAX - 50,
};

#[test]
fn numbers_wrap_and_flags_stand_where_they_belong() {
    let mut pool = Pool::new(1 << 20).unwrap();
    let train = FLOW.train(&mut pool, &payload(250), 100);
    let segments: Vec<_> = (0..3).map(|index| segment(&mut pool, train, index, 1).unwrap()).collect();
    // (IPv4 identification, sequence number, flags: CWR 80, ACK 10, PSH 08, FIN 01; payload bytes)
    let table = [(0xffff, u32::MAX - 50, 0x90, 100), (0, 49, 0x10, 100), (1, 149, 0x19, 50)];
    for (handle, (id, sequence, flags, len)) in segments.into_iter().zip(table) {
        let frame = pool.data(handle);
        assert_eq!(frame[18..20], u16::to_be_bytes(id));
        assert_eq!(frame[38..42], u32::to_be_bytes(sequence));
        assert_eq!((frame[47], frame.len()), (flags, 54 + len));
    }
}

#[test]
fn a_checksum_that_was_complete_is_made_anew() {
    let mut pool = Pool::new(1 << 20).unwrap();
    let train = FLOW.train(&mut pool, &payload(250), 100);
    pool.meta_mut(train).checksum = Checksum::Unknown as u8;
    pool.data_mut(train)[50] ^= 0xff;
    let part = segment(&mut pool, train, 1, 1).unwrap();
    assert_eq!(finished(&mut pool, part), FLOW.segments(&payload(250), 100)[1]);
}

#[test]
fn a_full_pool_gives_none() {
    let mut pool = Pool::new(1 << 20).unwrap();
    let train = FLOW.train(&mut pool, &payload(250), 100);
    while pool.alloc(154).is_some() {}
    while pool.alloc(0).is_some() {}
    assert_eq!(segment(&mut pool, train, 0, 1), None);
}

#[test]
fn the_longest_train_is_split() {
    let mut pool = Pool::new(1 << 20).unwrap();
    let payload = payload(65_535 - 40);
    let train = FLOW.train(&mut pool, &payload, 1448);
    assert_eq!(pool.meta(train).segments, 46);
    let last = segment(&mut pool, train, 45, 1).unwrap();
    assert_eq!(finished(&mut pool, last), *FLOW.segments(&payload, 1448).last().unwrap());
}

#[test]
fn claims_that_do_not_hold_are_refused() {
    let frame = FLOW.packet(&payload(250), 0, 0, true, true);
    let mut udp = Flow { tcp: false, ..FLOW }.packet(&payload(250), 0, 0, true, true);
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut refusal = |frame: &[u8], kind: u8, gso_size: u16| {
        let handle = pool.insert(frame).unwrap();
        let (meta, frame) = pool.parts_mut(handle);
        let result = validate_train(meta, frame, (kind, gso_size));
        pool.free(handle);
        result.err()
    };
    let says = |field, says, has| Some(TrainError::Length { field, says, has });
    let changed = |at: usize, value: u8| {
        let mut frame = frame.clone();
        frame[at] = value;
        frame
    };
    assert_eq!(refusal(&frame, 1, 100), None);
    assert_eq!(refusal(&frame, 3, 100), Some(TrainError::Kind(3)));
    assert_eq!(refusal(&frame, 1, 0), Some(TrainError::Size { gso_size: 0, payload: 250 }));
    assert!(matches!(refusal(&frame, 4, 100), Some(TrainError::Protocol { field: "EtherType", .. })));
    assert!(matches!(
        refusal(&frame, 5, 100),
        Some(TrainError::Protocol { field: "transport protocol", .. })
    ));
    assert!(matches!(refusal(&udp, 1, 100), Some(TrainError::Protocol { field: "transport protocol", .. })));
    assert_eq!(refusal(&frame[..303], 1, 100), says("IPv4 total length", 290, 289));
    assert_eq!(refusal(&changed(20, 0x20), 1, 100), Some(TrainError::Unfit("be an IP fragment")));
    assert!(matches!(refusal(&changed(46, 0x40), 1, 100), Some(TrainError::Header(_))));
    assert!(matches!(refusal(&frame[..20], 1, 100), Some(TrainError::Header(_))));
    udp[38..40].copy_from_slice(&[0, 100]);
    assert_eq!(refusal(&udp, 5, 100), says("UDP length", 100, 258));
    let long = FLOW.packet(&payload(65_535 - 40), 0, 0, true, true);
    assert_eq!(refusal(&long, 1, 1), None);
}

#[test]
fn a_train_cut_short_is_refused() {
    let mut pool = Pool::new(1 << 20).unwrap();
    let handle = pool.insert(&FLOW.packet(&payload(250), 0, 0, true, true)).unwrap();
    let (meta, frame) = pool.parts_mut(handle);
    meta.wire_len = 1000;
    assert_eq!(validate_train(meta, frame, (1, 100)), Err(TrainError::Cut { wire_len: 1000, len: 304 }));
}

/// A TCP train over IPv6 with an extension header of this kind before TCP.
fn extended(kind: u8, extension: &[u8]) -> Vec<u8> {
    let mut frame = Flow { v6: true, ..FLOW }.packet(&payload(250), 0, 0, true, true);
    let len = u16::from_be_bytes([frame[18], frame[19]]) + extension.len() as u16;
    frame[18..20].copy_from_slice(&len.to_be_bytes());
    frame[20] = kind;
    frame.splice(54..54, extension.iter().copied());
    frame
}

fn let_in(pool: &mut Pool, frame: &[u8]) -> Result<Handle, TrainError> {
    let handle = pool.insert(frame).unwrap();
    let (meta, frame) = pool.parts_mut(handle);
    meta.checksum = Checksum::Partial as u8;
    validate_train(meta, frame, (Gso::TcpV6 as u8, 100)).map(|()| handle)
}

#[test]
fn extension_headers_are_repeated_in_each_segment() {
    let options = [6, 0, 1, 4, 0, 0, 0, 0];
    let mut pool = Pool::new(1 << 20).unwrap();
    let train = let_in(&mut pool, &extended(60, &options)).unwrap();
    let meta = pool.meta(train);
    assert_eq!(meta.train().map(|train| train.header_len), Some(82));
    assert_eq!(meta.open_checksum().map(|(start, _)| start), Some(62));
    let part = segment(&mut pool, train, 2, 1).unwrap();
    let bytes = finished(&mut pool, part);
    assert_eq!((&bytes[54..62], &bytes[18..20]), (&options[..], &[0, 8 + 20 + 50][..]));
    // TCP header, payload and checksum equal those without the extension.
    let plain = Flow { v6: true, ..FLOW }.segments(&payload(250), 100);
    assert_eq!(bytes[62..], plain[2][54..]);
}

#[test]
fn ipv6_headers_that_segments_can_not_repeat_are_refused() {
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut refusal = |frame: &[u8]| let_in(&mut pool, frame).err();
    let routing = [6, 0, 4, 0, 0, 0, 0, 0];
    assert_eq!(refusal(&extended(43, &routing)), Some(TrainError::Unfit("have a routing header")));
    assert_eq!(
        refusal(&extended(44, &[6, 0, 0, 1, 0, 0, 0, 1])),
        Some(TrainError::Unfit("be an IP fragment"))
    );
    assert_eq!(refusal(&extended(59, &[])), Some(TrainError::Unfit("lack a transport header")));
    let mut long = extended(6, &[]);
    long.push(0);
    let length = TrainError::Length { field: "IPv6 payload length", says: 270, has: 271 };
    assert_eq!(refusal(&long), Some(length));
}
