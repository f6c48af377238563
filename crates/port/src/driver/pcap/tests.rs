use super::*;
use longwire_packet::{Checksum, Gso};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use tempfile::TempPath;

/// A temporary file with these bytes, removed on drop.
fn temporary(extension: &str, bytes: &[u8]) -> TempPath {
    let file = tempfile::Builder::new().suffix(&format!(".{extension}")).tempfile().unwrap();
    fs::write(&file, bytes).unwrap();
    file.into_temp_path()
}

/// Words in a byte order.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn u32(self, value: u32) -> [u8; 4] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u16(self, value: u16) -> [u8; 2] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn words(self, values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|&value| self.u32(value)).collect()
    }

    fn pcap(self, magic: u32, link: u32) -> Vec<u8> {
        let mut file = self.u32(magic).to_vec();
        file.extend([self.u16(2), self.u16(4)].concat());
        file.extend(self.words(&[0, 0, 65_535, link]));
        file
    }

    fn record(self, seconds: u32, fraction: u32, original: u32, data: &[u8]) -> Vec<u8> {
        let mut record = self.words(&[seconds, fraction, data.len() as u32, original]);
        record.extend(data);
        record
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let len = (padded + 12) as u32;
        let mut block = self.words(&[kind, len]);
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(self.u32(len));
        block
    }

    fn section(self) -> Vec<u8> {
        let mut body = self.u32(0x1a2b_3c4d).to_vec();
        body.extend([self.u16(1), self.u16(0)].concat());
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    fn interface(self, link: u16, name: &str, resolution: u8) -> Vec<u8> {
        let mut body = [self.u16(link), [0; 2]].concat();
        body.extend(self.u32(0));
        body.extend([self.u16(2), self.u16(name.len() as u16)].concat());
        body.extend(name.as_bytes());
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend([self.u16(9), self.u16(1)].concat());
        body.extend([resolution, 0, 0, 0, 0, 0, 0, 0]);
        self.block(1, &body)
    }

    fn packet(self, interface: u32, ticks: u64, original: u32, data: &[u8]) -> Vec<u8> {
        let head = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original];
        self.block(6, &[self.words(&head), data.to_vec()].concat())
    }
}

const SECOND: u64 = 1_000_000_000;

fn plan(input: &Path, epoch: u64) -> PcapPlan {
    PcapPlan { input: Some(input.to_path_buf()), epoch: Nanos(epoch), ..PcapPlan::default() }
}

/// All frames of a port: arrival, original length, first byte and length.
fn read(port: &mut PcapPort) -> Vec<(u64, u32, u8, usize)> {
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut seen = Vec::new();
    while let Some(time) = port.next_arrival().filter(|&time| time != Nanos::NEVER) {
        let mut batch = Batch::new();
        port.receive(&mut pool, time, &mut batch).unwrap();
        for &handle in batch.as_slice() {
            let (meta, data) = (pool.meta(handle), pool.data(handle));
            assert_eq!(meta.arrival, time.0);
            seen.push((meta.arrival, meta.wire_len, data[0], data.len()));
            pool.free(handle);
        }
    }
    seen
}

#[test]
fn reads_pcap_of_both_resolutions_and_byte_orders() {
    for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
        for order in [Order(true), Order(false)] {
            let mut bytes = order.pcap(magic, 1);
            bytes.extend(order.record(1_700_000_000, 5, 60, &[1; 60]));
            bytes.extend(order.record(1_700_000_001, 999_999, 1514, &[2; 96]));
            let file = temporary("pcap", &bytes);
            let first = start_of(&file, None).unwrap().unwrap();
            assert_eq!(first, Nanos(1_700_000_000 * SECOND + 5 * unit));
            let mut port = PcapPort::open("a", &plan(&file, first.0 - 7)).unwrap();
            let second = SECOND + 999_994 * unit + 7;
            assert_eq!(read(&mut port), [(7, 60, 1, 60), (second, 1514, 2, 96)]);
            let report = port.input_report();
            assert_eq!((report.frames, report.cut_short, report.refused()), (2, 1, 0));
            assert_eq!((port.stats().in_frames, port.stats().in_bytes), (2, 1574));
            assert_eq!(port.finish(), Ok(()));
        }
    }
}

#[test]
fn reads_one_interface_of_a_pcapng_file_or_all() {
    for order in [Order(true), Order(false)] {
        let mut bytes = order.section();
        bytes.extend(order.interface(1, "left", 9));
        bytes.extend(order.interface(1, "right", 6));
        // 2⁻¹⁰ s: 976 562.5 ns.
        bytes.extend(order.interface(1, "binary", 0x80 | 10));
        // Resolution finer than a nanosecond.
        bytes.extend(order.interface(1, "pico", 12));
        bytes.extend(order.interface(1, "finer", 0x80 | 32));
        bytes.extend(order.packet(0, 1000, 60, &[1; 60]));
        bytes.extend(order.packet(1, 2, 61, &[2; 61]));
        bytes.extend(order.block(0x0bad_0bad, &[0; 8]));
        bytes.extend(order.packet(0, 2000, 62, &[3; 62]));
        bytes.extend(order.packet(2, 3, 63, &[4; 63]));
        bytes.extend(order.packet(3, 3_000_000_999, 64, &[5; 64]));
        bytes.extend(order.packet(4, 1 << 31, 65, &[6; 65]));
        let file = temporary("pcapng", &bytes);
        let open = |interface| PcapPort::open("a", &PcapPlan { interface, ..plan(&file, 0) }).unwrap();
        let all = [
            (1000, 60, 1, 60),
            (2000, 61, 2, 61),
            (2000, 62, 3, 62),
            (2_929_687, 63, 4, 63),
            (3_000_000, 64, 5, 64),
            (SECOND / 2, 65, 6, 65),
        ];
        assert_eq!(read(&mut open(None)), all);
        assert_eq!(read(&mut open(Some(Select::Name("left".into())))), [all[0], all[2]]);
        assert_eq!(read(&mut open(Some(Select::Index(1)))), [all[1]]);
        assert_eq!(read(&mut open(Some(Select::Name("binary".into())))), [all[3]]);
        assert_eq!(interfaces(&file).unwrap(), ["left", "right", "binary", "pico", "finer"]);
        let missing = PcapPlan { interface: Some(Select::Name("middle".into())), ..plan(&file, 0) };
        let error = PcapPort::open("a", &missing).err().unwrap().to_string();
        assert!(error.contains("no interface \"middle\"; it has \"left\", \"right\", \"binary\""), "{error}");
    }
}

#[test]
fn oversize_frames_and_times_that_go_back_are_reported() {
    let order = Order(false);
    let mut bytes = order.pcap(0xa1b2_3c4d, 1);
    let mut tagged = [5; 1518];
    tagged[12..14].copy_from_slice(&[0x81, 0x00]);
    for (time, original, data) in [
        (500, 1514, &[1; 1514][..]),
        (400, 1515, &[2; 1515]),
        (300, 60, &[3; 60]),
        (600, 65_000, &[4; 128]),
        (700, 1518, &tagged),
        (800, 70_000, &[6; 70_000]),
        (900, 13, &[7; 13]),
    ] {
        bytes.extend(order.record(0, time, original, data));
    }
    let file = temporary("pcap", &bytes);
    let limited = PcapPlan { mtu: Some(1500), ..plan(&file, 450) };
    let mut port = PcapPort::open("a", &limited).unwrap();
    assert_eq!(read(&mut port), [(50, 1514, 1, 1514), (50, 60, 3, 60), (250, 1518, 5, 1518)]);
    let wanted = InputReport {
        frames: 3,
        oversize: 3,
        largest_oversize: 70_000,
        too_short: 1,
        backwards: 1,
        cut_short: 0,
    };
    assert_eq!(port.input_report(), wanted);
    assert_eq!(port.stats().in_bad, 4);
}

#[test]
fn the_good_part_of_a_damaged_file_is_used() {
    let order = Order(false);
    let mut good = order.pcap(0xa1b2_3c4d, 1);
    good.extend(order.record(0, 1, 60, &[1; 60]));
    let frame = order.record(0, 2, 60, &[2; 60]);
    let cases = [
        (frame[..40].to_vec(), "cut short"),
        (order.words(&[0, 2, u32::MAX, 60]), "cut short"),
        (order.record(0, SECOND as u32, 60, &[2; 60]), "fractions"),
    ];
    for (tail, wanted) in cases {
        let file = temporary("pcap", &[good.clone(), tail].concat());
        let mut port = PcapPort::open("a", &plan(&file, 0)).unwrap();
        assert_eq!(read(&mut port), [(1, 60, 1, 60)]);
        let error = port.finish().unwrap_err().to_string();
        assert!(error.contains("port a:") && error.contains("after 1 good frames"), "{error}");
        assert!(error.contains(wanted), "{error}");
    }
    let mut ng = [order.section(), order.interface(1, "x", 9), order.packet(0, 1, 60, &[1; 60])].concat();
    let mut wrong = order.packet(0, 2, 60, &[2; 60]);
    wrong[20] = 200;
    for tail in [
        wrong,
        order.packet(7, 2, 60, &[2; 60]),
        order.block(3, &[0; 64]),
        vec![6, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0],
    ] {
        let file = temporary("pcapng", &[ng.clone(), tail].concat());
        let mut port = PcapPort::open("a", &plan(&file, 0)).unwrap();
        assert_eq!(read(&mut port), [(1, 60, 1, 60)]);
        assert!(matches!(port.damage(), Some(PcapError::Damaged { frames: 1, .. })), "{:?}", port.damage());
    }
    ng.truncate(ng.len() - 1);
    let file = temporary("pcapng", &ng);
    assert!(PcapPort::open("a", &plan(&file, 0)).unwrap().finish().is_err());
}

#[test]
fn what_is_no_ethernet_capture_is_refused() {
    let order = Order(true);
    let ng = [order.section(), order.interface(113, "any", 9), order.packet(0, 1, 60, &[1; 60])].concat();
    for (bytes, wanted) in [
        (order.pcap(0xa1b2_c3d4, 113), "LINUX_SLL"),
        (ng, "LINUX_SLL"),
        (vec![0x1f, 0x8b, 8, 0, 0], "gunzip"),
        (b"hello world".to_vec(), "no pcap or pcapng file"),
        (vec![], "too short"),
        (order.pcap(0xa1b2_c3d4, 1)[..20].to_vec(), "cut short"),
    ] {
        let file = temporary("pcap", &bytes);
        let error = PcapPort::open("a", &plan(&file, 0)).err().unwrap().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let missing = PcapPlan { input: Some("/nonexistent/x.pcap".into()), ..PcapPlan::default() };
    assert!(PcapPort::open("a", &missing).err().unwrap().to_string().contains("No such file"));
}

/// A train of two and a half segments of 1000 bytes, with a partial checksum.
fn train(pool: &mut Pool) -> longwire_packet::Handle {
    let mut frame = vec![0; 54 + 2500];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&2540u16.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[46] = 0x50;
    let handle = pool.insert(&frame).unwrap();
    let (meta, data) = pool.parts_mut(handle);
    meta.checksum = Checksum::Partial as u8;
    longwire_wire::validate_train(meta, data, (Gso::TcpV4 as u8, 1000)).unwrap();
    handle
}

#[test]
fn writes_what_it_reads_and_splits_trains() {
    for extension in ["pcap", "pcapng"] {
        let file = temporary(extension, &[]);
        let plan = PcapPlan {
            output: Some(file.to_path_buf()),
            epoch: Nanos(1_700_000_000 * SECOND),
            ..PcapPlan::default()
        };
        let mut port = PcapPort::open("east", &plan).unwrap();
        assert_eq!(port.next_arrival(), Some(Nanos::NEVER));
        let mut pool = Pool::new(1 << 20).unwrap();
        let mut batch = Batch::new();
        for (arrival, leave, wire_len, byte) in [(5, 12, 60, 1), (20, 0, 1514, 2)] {
            let handle = pool.insert(&[byte; 60]).unwrap();
            let meta = pool.meta_mut(handle);
            (meta.arrival, meta.wire_len) = (arrival, wire_len);
            meta.set_leave(leave);
            batch.push(handle);
        }
        let whole = train(&mut pool);
        pool.meta_mut(whole).set_leave(30);
        batch.push(whole);
        port.transmit(&mut pool, &batch).unwrap();
        port.finish().unwrap();
        assert_eq!(
            (port.stats().out_frames, port.stats().out_bytes, pool.live()),
            (5, 60 + 1514 + 2500 + 3 * 54, 0)
        );

        let bytes = fs::read(&file).unwrap();
        let magic: &[u8] =
            if extension == "pcap" { &0xa1b2_3c4d_u32.to_ne_bytes() } else { &[10, 13, 13, 10] };
        assert_eq!(&bytes[..4], magic);
        assert_eq!(interfaces(&file).unwrap(), [if extension == "pcap" { "" } else { "east" }]);
        let again = PcapPlan { input: Some(file.to_path_buf()), output: None, ..plan };
        let mut back = PcapPort::open("west", &again).unwrap();
        let parts = [(30, 1054, 0, 1054), (30, 1054, 0, 1054), (30, 554, 0, 554)];
        let wanted = [&[(12, 60, 1, 60), (20, 1514, 2, 60)][..], &parts].concat();
        assert_eq!(read(&mut back), wanted);
    }
}

#[test]
fn a_full_disk_is_an_error_and_counted() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return println!("skipped: this system has no /dev/full");
    }
    let plan = PcapPlan { output: Some(full.into()), ..PcapPlan::default() };
    let mut port = PcapPort::open("a", &plan).unwrap();
    let mut pool = Pool::new(1 << 20).unwrap();
    let mut batch = Batch::new();
    batch.push(pool.insert(&[0; 60]).unwrap());
    port.transmit(&mut pool, &batch).unwrap();
    let error = port.finish().unwrap_err().to_string();
    assert!(error.starts_with("port a: the capture /dev/full is incomplete: No space left"), "{error}");
    batch.clear();
    batch.push(pool.insert(&[0; 60]).unwrap());
    assert!(port.transmit(&mut pool, &batch).is_err());
    assert_eq!((port.stats().out_frames, port.stats().out_down, pool.live()), (1, 1, 0));
}

#[test]
fn a_recording_gives_each_port_its_arrivals_again() {
    let file = temporary("rec", &[]);
    let epoch = Nanos(1_700_000_000 * SECOND);
    let made = fs::File::create(&file).unwrap();
    let mut recorder = Recorder::begin(&file, made, &["left", "right"], epoch).unwrap();
    recorder.note_start(Nanos(40));
    let mut pool = Pool::new(1 << 20).unwrap();
    let whole = train(&mut pool);
    pool.meta_mut(whole).arrival = 150;
    let before = (*pool.meta(whole), pool.data(whole).to_vec());
    for (port, time, byte) in [(0, 100, 1), (1, 100, 2), (0, 123, 3)] {
        let handle = pool.insert(&[byte; 60]).unwrap();
        pool.meta_mut(handle).arrival = time;
        recorder.record(&mut pool, port, handle);
        pool.free(handle);
    }
    recorder.record(&mut pool, 1, whole);
    assert_eq!((*pool.meta(whole), pool.data(whole).to_vec()), before);
    pool.free(whole);
    recorder.finish().unwrap();
    assert_eq!((recorder.missed(), pool.live()), (0, 0));
    let open = |name: &str| {
        let interface = Some(Select::Name(name.into()));
        assert_eq!(start_of(&file, interface.clone()).unwrap(), Some(epoch + Nanos(40)));
        PcapPort::open(name, &PcapPlan { interface, ..plan(&file, epoch.0) }).unwrap()
    };
    assert_eq!(read(&mut open("left")), [(100, 60, 1, 60), (123, 60, 3, 60)]);
    let right = read(&mut open("right"));
    assert_eq!(right[0], (100, 60, 2, 60));
    assert_eq!(
        right[1..].iter().map(|frame| (frame.0, frame.3)).collect::<Vec<_>>(),
        [(150, 1054), (150, 1054), (150, 554)]
    );
}

/// Statistics of other programs are not about the run.
#[test]
fn only_recordings_of_longwire_begin_before_their_first_frame() {
    for order in [Order(true), Order(false)] {
        let start = [order.u16(2), order.u16(8)].concat();
        let statistics = [order.words(&[0, 0, 7]), start, order.words(&[0, 3])].concat();
        let blocks = [order.interface(1, "x", 9), order.block(5, &statistics)].concat();
        let file = temporary("pcapng", &[order.section(), blocks, order.packet(0, 5, 60, &[1; 60])].concat());
        assert_eq!(start_of(&file, None).unwrap(), Some(Nanos(5)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn hostile_files_never_panic(
        ng in any::<bool>(),
        at in 0usize..400,
        noise in proptest::collection::vec(any::<u8>(), 1..40),
        cut in 0usize..400,
    ) {
        let order = Order(false);
        let mut bytes = if ng {
            [order.section(), order.interface(1, "x", 9), order.packet(0, 1, 60, &[1; 60]),
                order.packet(0, 2, 90, &[1; 60])].concat()
        } else {
            [order.pcap(0xa1b2_3c4d, 1), order.record(0, 1, 60, &[1; 60]),
                order.record(0, 2, 90, &[1; 60])].concat()
        };
        for (byte, noise) in bytes.iter_mut().skip(at).zip(&noise) {
            *byte = *noise;
        }
        bytes.truncate(bytes.len().max(cut) - cut / 2);
        let file = temporary("pcap", &bytes);
        let _ = interfaces(&file);
        if let Ok(mut port) = PcapPort::open("a", &plan(&file, 0)) {
            read(&mut port);
            let _ = port.finish();
        }
    }
}
