//! All blocks a link can have, and a link's configuration made of them.

use longwire_block::{Spec, SpecError, Values};

/// Makes a stage: an enum over its blocks, each in a file of its own, with the calls that the link makes on them.
///
/// A block implements [`longwire_block::Block`] and the stage's trait, whose calls are listed here. Small blocks that
/// most links have lie in the link's own record (`inline`), all others behind a pointer (`boxed`). Calls
/// behind `ask` change nothing; those behind `apart` are too long to be put in place for either.
macro_rules! stage {
    (
        $(#[$doc:meta])* $name:ident: $trait:ident $blocks:tt
        $(fn $call:ident(&mut self $(, $arg:ident: $type:ty)*) $(-> $ret:ty)?;)*
        $(ask $(fn $ask:ident(&self $(, $qarg:ident: $qtype:ty)*) $(-> $qret:ty)?;)*)?
        $(apart $(fn $apart:ident(&mut self $(, $parg:ident: $ptype:ty)*) $(-> $pret:ty)?;)*)?
    ) => {
        $crate::registry::stage!(@enum $blocks $name $(#[$doc])*);

        impl $name {
            $($crate::registry::stage!(
                @call $blocks $name $trait $call($($arg: $type),*) ($($arg),*) $(-> $ret)?
            );)*
            $($($crate::registry::stage!(
                @ask $blocks $name $trait $ask($($qarg: $qtype),*) ($($qarg),*) $(-> $qret)?
            );)*)?
            $($($crate::registry::stage!(
                @apart $blocks $name $trait $apart($($parg: $ptype),*) ($($parg),*) $(-> $pret)?
            );)*)?
        }
    };
    (@apart { inline { $($inline:ident = $small:ty,)+ } boxed { $($boxed:ident = $large:ty,)* } }
        $name:ident $trait:ident $call:ident($($arg:ident: $type:ty),*) $pass:tt $(-> $ret:ty)?
    ) => {
        #[doc = concat!("See [`", stringify!($trait), "::", stringify!($call), "`].")]
        #[inline(always)]
        pub fn $call(&mut self $(, $arg: $type)*) $(-> $ret)? {
            trait Apart: $trait {
                #[inline(never)]
                fn apart(&mut self $(, $arg: $type)*) $(-> $ret)? {
                    self.$call $pass
                }
            }
            impl<B: $trait> Apart for B {}
            match self {
                $(Self::$inline(block) => block.apart $pass,)+
                $(Self::$boxed(block) => block.apart $pass,)*
            }
        }
    };
    (@ask { inline { $($inline:ident = $small:ty,)+ } boxed { $($boxed:ident = $large:ty,)* } }
        $name:ident $trait:ident $call:ident($($arg:ident: $type:ty),*) $pass:tt $(-> $ret:ty)?
    ) => {
        #[doc = concat!("See [`", stringify!($trait), "::", stringify!($call), "`].")]
        #[inline(always)]
        pub fn $call(&self $(, $arg: $type)*) $(-> $ret)? {
            /// The blocks that few links have are distinguished here, out of the way of the others.
            #[inline(never)]
            fn $call(stage: &$name $(, $arg: $type)*) $(-> $ret)? {
                match stage {
                    $($name::$boxed(block) => block.$call $pass,)*
                    $($name::$inline(block) => block.$call $pass,)+
                }
            }
            match self {
                $(Self::$inline(block) => block.$call $pass,)+
                other => $call(other $(, $arg)*),
            }
        }
    };
    (@call { inline { $($inline:ident = $small:ty,)+ } boxed { $($boxed:ident = $large:ty,)* } }
        $name:ident $trait:ident $call:ident($($arg:ident: $type:ty),*) $pass:tt $(-> $ret:ty)?
    ) => {
        #[doc = concat!("See [`", stringify!($trait), "::", stringify!($call), "`].")]
        #[inline(always)]
        pub fn $call(&mut self $(, $arg: $type)*) $(-> $ret)? {
            /// The blocks that few links have are distinguished here, out of the way of the others.
            #[inline(never)]
            fn $call(stage: &mut $name $(, $arg: $type)*) $(-> $ret)? {
                /// Each by itself: telling them apart is but a jump then, that saves no registers for any of them.
                trait Apart: $trait {
                    #[inline(never)]
                    fn apart(&mut self $(, $arg: $type)*) $(-> $ret)? {
                        self.$call $pass
                    }
                }
                impl<B: $trait> Apart for B {}
                match stage {
                    $($name::$boxed(block) => block.apart $pass,)*
                    $($name::$inline(block) => block.$call $pass,)+
                }
            }
            match self {
                $(Self::$inline(block) => block.$call $pass,)+
                other => $call(other $(, $arg)*),
            }
        }
    };
    (@enum { inline { $($inline:ident = $small:ty,)+ } boxed { $($boxed:ident = $large:ty,)* } }
        $name:ident $(#[$doc:meta])*
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {
            $(#[doc = concat!("See [`", stringify!($small), "`].")] $inline($small),)+
            $(#[doc = concat!("See [`", stringify!($large), "`].")] $boxed(Box<$large>),)*
        }

        impl $name {
            /// The rows of this stage's blocks; the first of a key is that key's default.
            pub const SPECS: &'static [&'static longwire_block::Spec] = &[
                $(&<$small as longwire_block::Block>::SPEC,)+
                $(&<$large as longwire_block::Block>::SPEC,)*
            ];

            /// The block that `spec` describes, or none if it is of another stage.
            pub fn build(
                spec: &longwire_block::Spec,
                values: &longwire_block::Values,
                dice: impl FnOnce() -> longwire_block::Dice,
            ) -> Option<Self> {
                use longwire_block::{Block, Settings};
                $(if spec.is(&<$small>::SPEC) {
                    return Some(Self::$inline(<$small>::build(Settings::of(values), dice())));
                })+
                $(if spec.is(&<$large>::SPEC) {
                    return Some(Self::$boxed(Box::new(<$large>::build(Settings::of(values), dice()))));
                })*
                None
            }

            /// The row of this block.
            pub fn spec(&self) -> &'static longwire_block::Spec {
                use longwire_block::Block;
                match self {
                    $(Self::$inline(_) => &<$small>::SPEC,)+
                    $(Self::$boxed(_) => &<$large>::SPEC,)*
                }
            }

            /// Bytes of its record, if that lies behind a pointer.
            pub fn record_bytes(&self) -> usize {
                match self {
                    $(Self::$inline(_) => 0,)+
                    $(Self::$boxed(_) => size_of::<$large>(),)*
                }
            }

            /// Takes new parameters; what the block has gathered so far stays.
            pub fn change(&mut self, values: &longwire_block::Values) {
                use longwire_block::{Block, Settings};
                match self {
                    $(Self::$inline(block) => block.change(Settings::of(values)),)+
                    $(Self::$boxed(block) => block.change(Settings::of(values)),)*
                }
            }

            /// Tells when the run begins.
            pub fn start(&mut self, begin: longwire_units::Nanos) {
                use longwire_block::Block;
                match self {
                    $(Self::$inline(block) => block.start(begin),)+
                    $(Self::$boxed(block) => block.start(begin),)*
                }
            }
        }
    };
}
pub(crate) use stage;

/// The rows of all blocks, in the order of the stages.
pub fn registry() -> Vec<&'static Spec> {
    use crate::{delay::Delay, filter::Filter, impair::Impair, queue::Queue, transmit::Transmit};
    let stages = [Filter::SPECS, Impair::SPECS, Queue::SPECS, Transmit::SPECS, Delay::SPECS];
    // The blocks of a key stand together, the default of the key first.
    let mut rows = stages.concat();
    rows.extend(longwire_random::process::SPECS);
    // No link has this by itself: it comes with a medium.
    rows.retain(|spec| !spec.is(&<crate::transmit::shared::Shared as longwire_block::Block>::SPEC));
    let keys: Vec<&str> = rows.iter().map(|spec| spec.key).collect();
    rows.sort_by_key(|spec| keys.iter().position(|key| *key == spec.key));
    rows
}

/// The kind that stands for having no block of a key.
pub const NONE: &str = "none";

/// What stands for having no block of a key: no link has it, but a change to it takes the link's own away.
const fn nothing(key: &'static str) -> Spec {
    Spec {
        key,
        kind: NONE,
        summary: "Nothing: packets pass as if there were no such thing.",
        source: "own definition",
        params: &[],
    }
}

/// For each key that a link can be without, what takes its block away.
static WITHOUT: [Spec; 7] = [
    nothing("mtu"),
    nothing("filter"),
    nothing("loss"),
    nothing("bit-error"),
    nothing("duplicate"),
    nothing("reorder"),
    nothing(crate::background::KEY),
];

/// The row that takes a link's block of this key away; none if a link always has one (a rate, a queue), or one that does nothing by
/// itself (a state that is up).
pub fn without(key: &str) -> Option<&'static Spec> {
    WITHOUT.iter().find(|spec| spec.key == key)
}

/// What a link is made of: at most one block a key; keys not named have their default.
#[derive(Debug, Clone, Default)]
pub struct LinkConfig {
    blocks: Vec<(&'static Spec, Values)>,
    /// Whether the link keeps a histogram of lateness.
    pub histogram: bool,
    /// Whether it serves packets even where all could be decided when they arrive: the same with more work. Tests compare both.
    #[doc(hidden)]
    pub served: bool,
}

impl LinkConfig {
    /// A link of these blocks.
    pub fn new(blocks: Vec<(&'static Spec, Values)>, histogram: bool) -> Self {
        Self { blocks, histogram, served: false }
    }

    /// The same with the key of `spec` set to `values`.
    pub fn with(mut self, spec: &'static Spec, values: Values) -> Self {
        self.blocks.retain(|(other, _)| other.key != spec.key);
        self.blocks.push((spec, values));
        self
    }

    /// The same with `key` set from text, by the default block of that key: for tests and short forms.
    ///
    /// # Errors
    /// If there is no such key or the text is not what its first parameter takes.
    pub fn with_text(self, key: &str, text: &str) -> Result<Self, SpecError> {
        let Some(spec) = registry().into_iter().find(|spec| spec.key == key) else {
            let known = registry().iter().map(|spec| spec.key).collect::<Vec<_>>().join(", ");
            return Err(SpecError::Unknown { key: "link", kind: "any", name: key.into(), known });
        };
        let values = Values::read(spec, &[(spec.params[0].name, text)])?;
        Ok(self.with(spec, values))
    }

    /// The blocks that were named.
    pub fn blocks(&self) -> &[(&'static Spec, Values)] {
        &self.blocks
    }

    /// The block for `key`, if one was named.
    pub fn block(&self, key: &str) -> Option<&(&'static Spec, Values)> {
        self.blocks.iter().find(|(spec, _)| spec.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_unique_and_their_defaults_can_be_read() {
        let rows = registry();
        for spec in &rows {
            assert_eq!(rows.iter().filter(|s| (s.key, s.kind) == (spec.key, spec.kind)).count(), 1);
            assert!(!spec.summary.is_empty() && !spec.source.is_empty() && !spec.params.is_empty());
            for param in spec.params {
                assert!(!param.help.is_empty(), "{} {}", spec.kind, param.name);
                if let Some(default) = param.default {
                    let value = param.read(default).unwrap();
                    assert_eq!(param.read(&value.print(param.kind)).unwrap(), value);
                }
            }
        }
    }

    #[test]
    fn a_key_is_set_once() {
        let config =
            LinkConfig::default().with_text("loss", "1 %").unwrap().with_text("loss", "2 %").unwrap();
        assert_eq!(config.blocks().len(), 1);
        assert!(LinkConfig::default().with_text("los", "1 %").unwrap_err().to_string().contains("loss"));
    }
}
