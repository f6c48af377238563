//! The types of an object's maps as written by clang: layout of keys, values and variables.

use longwire_program::{Field, Object, Program, Shape, ShapeError};

const EVENTS: &[u8] = include_bytes!("objects/events.o");
const COUNTER: &[u8] = include_bytes!("objects/counter.o");

fn number(size: u32) -> Shape {
    Shape::Number { size, signed: false, network: false }
}

fn array(element: Shape, count: u32) -> Shape {
    Shape::Array { element: Box::new(element), count }
}

fn fields(size: u32, all: &[(&str, u32, Shape)]) -> Shape {
    let field = |(name, bit, shape): &(&str, u32, Shape)| Field {
        name: (*name).into(),
        bit: *bit,
        shape: shape.clone(),
    };
    Shape::Struct { size, fields: all.iter().map(field).collect() }
}

fn program(bytes: &[u8], name: &str) -> Program {
    Object::parse(bytes).unwrap().program(name).unwrap()
}

/// The shapes of a map's keys and values.
fn of(program: &Program, map: &str) -> [Result<Shape, ShapeError>; 2] {
    let place = program.maps.iter().position(|spec| *spec.name == *map).unwrap();
    let spec = &program.maps[place];
    [program.types.key(place, spec), program.types.value(place, spec)]
}

fn ends() -> Shape {
    let port = Shape::Number { size: 2, signed: false, network: true };
    let all = [
        ("source", 0, Shape::AddressV4),
        ("destination", 32, Shape::AddressV4),
        ("ports", 64, array(port, 2)),
    ];
    fields(12, &all)
}

fn kind() -> Shape {
    let names = [("NOTHING", 0), ("DATAGRAM", 3), ("OTHER", 4)].map(|(name, number)| (name.into(), number));
    Shape::Enum { size: 4, signed: false, names: Box::new(names) }
}

#[test]
fn structures_are_followed_to_their_numbers() {
    let four = Shape::Bits { width: 4, signed: false };
    let event = fields(
        36,
        &[
            ("ends", 0, ends()),
            ("kind", 96, kind()),
            ("length", 128, number(2)),
            ("ttl", 144, four.clone()),
            ("hops", 148, four),
            ("fragment", 152, Shape::Truth(1)),
            ("name", 160, array(Shape::Character, 8)),
            ("station", 224, array(number(1), 6)),
            // Members of the anonymous union.
            ("identification", 272, number(2)),
            ("bytes", 272, array(number(1), 2)),
        ],
    );
    let copied = program(EVENTS, "copied");
    assert_eq!(of(&copied, "last"), [Ok(ends()), Ok(event.clone())]);
    assert_eq!(of(&copied, "kinds"), [Ok(number(4)), Ok(kind())]);
    assert_eq!(copied.types.named("event"), Ok(event));
    assert_eq!(copied.types.named("__be32"), Ok(Shape::AddressV4));
    let missing = copied.types.named("events").unwrap_err().to_string();
    assert_eq!(missing, "the object has no type \"events\"");
}

#[test]
fn variables_lie_where_their_symbols_are() {
    let copied = program(EVENTS, "copied");
    let [key, value] = of(&copied, ".bss");
    assert_eq!(key, Err(ShapeError::None));
    let Ok(Shape::Struct { size, fields }) = value else { panic!("{value:?}") };
    let mut named: Vec<_> = fields.iter().map(|field| (&*field.name, field.shape.clone())).collect();
    named.sort_by_key(|(name, _)| name.to_string());
    assert_eq!(named, [("latest", ends()), ("seen", number(8))]);
    assert!(size >= 20 && fields.iter().all(|field| field.bit / 8 + field.shape.size() as u32 <= size));
}

#[test]
fn rings_have_no_types_and_sizes_that_are_the_kernels() {
    let reserved = program(EVENTS, "reserved");
    let sizes = |map: &str| {
        let spec = reserved.maps.iter().find(|spec| *spec.name == *map).unwrap();
        (spec.kind.name(), spec.key_size, spec.value_size, spec.max_entries)
    };
    // 5000 bytes are two pages; without a number of workers, the maximum is used.
    assert_eq!(sizes("records"), ("ringbuf", 0, 0, 8192));
    assert_eq!(sizes("samples"), ("perf_event_array", 4, 4, 256));
    assert!(of(&reserved, "records").iter().all(Result::is_err));
}

#[test]
fn what_is_declared_by_sizes_has_no_types() {
    let count = program(COUNTER, "count");
    for map in ["protocols", "sources"] {
        let spec = count.maps.iter().find(|spec| *spec.name == *map).unwrap();
        for (shape, size) in of(&count, map).into_iter().zip([spec.key_size, spec.value_size]) {
            assert!(
                shape.map_or_else(|error| error == ShapeError::None, |shape| shape.size() == u64::from(size))
            );
        }
    }
}
