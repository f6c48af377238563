//! The macro that makes a stage from its blocks.

use crate::foresight::Foresight;

/// Makes a stage: an enum of its blocks, each in its own file, with the link's calls to them.
///
/// A block implements [`longwire_block::Block`] and the stage's trait, whose calls are listed here. Small
/// blocks that most links have are stored in the link's own record (`inline`), all others behind a pointer
/// (`boxed`). Calls behind `ask` change nothing; those behind `apart` are too long to be inlined for either.
/// `entry` gives the instance of a generic function for the block's type, which finds the block in what holds
/// it: [`OfStage`].
macro_rules! stage {
    (
        $(#[$doc:meta])* $name:ident: $trait:ident $blocks:tt
        $(fn $call:ident(&mut self $(, $arg:ident: $type:ty)*) $(-> $ret:ty)?;)*
        $(ask $(fn $ask:ident(&self $(, $qarg:ident: $qtype:ty)*) $(-> $qret:ty)?;)*)?
        $(apart $(fn $apart:ident(&mut self $(, $parg:ident: $ptype:ty)*) $(-> $pret:ty)?;)*)?
        $(entry fn $entry:ident<$holder:ident: $bound:path>(&self) -> $function:ty = $generic:ident;)?
    ) => {
        $crate::stage::stage!(@enum $blocks $name $(#[$doc])*);
        $($crate::stage::stage!(@entry $blocks $name $entry $holder ($bound) ($function) $generic);)?

        impl $name {
            $($crate::stage::stage!(
                @call $blocks $name $trait $call($($arg: $type),*) ($($arg),*) $(-> $ret)?
            );)*
            $($($crate::stage::stage!(
                @ask $blocks $name $trait $ask($($qarg: $qtype),*) ($($qarg),*) $(-> $qret)?
            );)*)?
            $($($crate::stage::stage!(
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
            /// Selects among rare blocks, out of line.
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
            /// Selects among rare blocks, out of line.
            #[inline(never)]
            fn $call(stage: &mut $name $(, $arg: $type)*) $(-> $ret)? {
                /// Separate functions: selecting one is then only a jump, without saving registers.
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
    (@entry { inline { $($inline:ident = $small:ty,)+ } boxed { $($boxed:ident = $large:ty,)* } }
        $name:ident $entry:ident $holder:ident ($bound:path) ($function:ty) $generic:ident
    ) => {
        $(impl $crate::stage::OfStage<$name> for $small {
            #[inline(always)]
            fn of(stage: &mut $name) -> Option<&mut Self> {
                if let $name::$inline(block) = stage { Some(block) } else { None }
            }
        })+
        $(impl $crate::stage::OfStage<$name> for $large {
            #[inline(always)]
            fn of(stage: &mut $name) -> Option<&mut Self> {
                if let $name::$boxed(block) = stage { Some(block) } else { None }
            }
        })*

        impl $name {
            #[doc = concat!("See [`", stringify!($generic), "`].")]
            #[inline(always)]
            pub(crate) fn $entry<$holder: $bound>(&self) -> $function {
                match self {
                    $(Self::$inline(_) => $generic::<$holder, $name, $small>,)+
                    $(Self::$boxed(_) => $generic::<$holder, $name, $large>,)*
                }
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

            /// The block for `spec`, or none if it belongs to another stage.
            pub fn build(
                spec: &longwire_block::Spec,
                values: &longwire_block::Values,
                dice: impl FnOnce() -> longwire_block::Dice,
            ) -> Option<Self> {
                use longwire_block::{Block, Settings};
                $(if spec.is(&<$small as Block>::SPEC) {
                    return Some(Self::$inline(<$small>::build(Settings::of(values), dice())));
                })+
                $(if spec.is(&<$large as Block>::SPEC) {
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

            /// Size of its record, if that is behind a pointer.
            pub fn record_bytes(&self) -> usize {
                match self {
                    $(Self::$inline(_) => 0,)+
                    $(Self::$boxed(_) => size_of::<$large>(),)*
                }
            }

            /// Applies new parameters; accumulated state stays.
            pub fn change(&mut self, values: &longwire_block::Values) {
                use longwire_block::{Block, Settings};
                match self {
                    $(Self::$inline(block) => block.change(Settings::of(values)),)+
                    $(Self::$boxed(block) => block.change(Settings::of(values)),)*
                }
            }

            /// Sets the beginning of the run.
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

/// A block of a stage.
pub(crate) trait OfStage<S>: Sized {
    /// The block, if the stage has one of this type.
    fn of(stage: &mut S) -> Option<&mut Self>;
}

/// What holds a judge of a stage.
pub(crate) trait Holds<S> {
    /// The stage, or none if there is no judge, and what the judge has foreseen.
    fn held(&mut self) -> (Option<&mut S>, &mut Foresight);
}
