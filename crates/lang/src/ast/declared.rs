//! What a declaration of a file declares, and under which name.

use super::{Item, Name};

impl Item {
    /// What kind of thing it declares, and under which name.
    pub fn declared(&self) -> Option<(&'static str, &Name)> {
        match self {
            Item::Const(item) => Some(("constant", &item.name)),
            Item::Enum(item) => Some(("enum", &item.name)),
            Item::Layout(item) => Some(("layout", &item.name)),
            Item::Table(item) => Some(("table", &item.name)),
            Item::Counter(item) => Some(("counter", &item.name)),
            Item::Meter(item) => Some(("meter", &item.name)),
            Item::Register(item) => Some(("register", &item.name)),
            Item::Pool(item) => Some(("pool", &item.name)),
            Item::Group(item) => Some(("group", &item.name)),
            Item::Reason(item) => Some(("reason", &item.name)),
            Item::Function(item) => Some(("function", &item.name)),
            Item::Stage(item) => Some(("stage", &item.name)),
            Item::Extern(item) => Some(("extern stage", &item.name)),
            Item::Policy(item) => Some(("policy", &item.name)),
            Item::Event(item) => Some(("event", &item.name)),
            Item::Every(_) | Item::Order(_) | Item::Test(_) => None,
        }
    }

    /// The name under which it declares something.
    pub fn name(&self) -> Option<&String> {
        self.declared().map(|(_, name)| &name.text)
    }
}
