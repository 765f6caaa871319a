//! What packets pass through: decoders and stages, and the stages that a module asks the program for.

use super::{Block, Expr, Name, Param};
use ir::source::Span;

/// A decoder (it decodes one header first) or a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Its name.
    pub name: Name,
    /// Packets begin here.
    pub start: bool,
    /// What says to which worker a packet goes begins here.
    pub steers: bool,
    /// For a decoder: the name the header gets, and its layout.
    pub header: Option<(Name, Name)>,
    /// Values handed over by `goto`.
    pub params: Vec<Param>,
    /// `cap N`: how often a packet may pass here.
    pub cap: Option<Expr>,
    /// Headers that must have been decoded.
    pub requires: Vec<Name>,
    /// What it does.
    pub body: Block,
    /// The whole declaration.
    pub span: Span,
}

impl Stage {
    /// A stage without a header of its own, as a compiler writes one.
    pub fn written(name: Name, params: Vec<Param>, body: Block, span: Span) -> Stage {
        let (header, cap, requires) = (None, None, Vec::new());
        Stage { name, start: false, steers: false, header, params, cap, requires, body, span }
    }
}

/// `extern stage NAME(params) requires … { … }` of a module: a stage that the importing program declares. If
/// there is a body and the program declares no such stage, the body is the stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Extern {
    /// Its name.
    pub name: Name,
    /// Values that the module hands over by `goto`.
    pub params: Vec<Param>,
    /// Headers that the module has decoded before it goes there.
    pub requires: Vec<Name>,
    /// What happens in a program that declares no such stage.
    pub body: Option<Block>,
    /// The whole declaration.
    pub span: Span,
}
