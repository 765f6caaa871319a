//! Random use of groups: packets to a member or to all of them, and members that come and go.

use super::Writer;
use super::expressions::Scope;
use super::model::GeneratedType;

/// Groups of ports of every program, by name, and how many independent ones each is where it is several.
const GROUPS: [(&str, Option<u64>); 2] = [("alone", None), ("several", Some(3))];

impl Writer {
    /// Declarations; members to begin with are ports of the four that every run has.
    pub(super) fn groups(&mut self) {
        let (first, second) = (self.random.between(1, 4), self.random.between(1, 4));
        let capacity = self.random.between(1, 4);
        self.line(&format!("group alone: port {{ buckets 8 capacity {capacity} members {{ {first} }} }}"));
        self.line(&format!("group several[3]: port {{ buckets 4 capacity 2 members {{ 1: {second} }} }}"));
        self.line("group pairs: (u8, u48) { buckets 8 capacity 3 }");
    }

    /// A group's name and the number of one of them, which may not exist.
    fn one_group(&mut self, scope: &Scope) -> (&'static str, Option<String>) {
        let (name, size) = *self.random.pick(&GROUPS);
        let index = size.map(|size| match self.random.below(3) {
            0 => self.expression(scope, &GeneratedType::Uint(8), 1, true),
            _ => self.random.below(size).to_string(),
        });
        (name, index)
    }

    /// A member joins or leaves; it may be a port that does not exist.
    pub(super) fn change_group(&mut self, scope: &Scope) {
        let named = if self.random.one_in(3) {
            let (first, second) = (self.random.below(4), self.random.value(48));
            format!("pairs[{first}, {second}]")
        } else {
            let (name, index) = self.one_group(scope);
            let index = index.map(|index| format!("{index}, ")).unwrap_or_default();
            let port = self.port(scope);
            format!("{name}[{index}{port}]")
        };
        if self.random.one_in(3) {
            self.saw("member leaves");
            return self.line(&format!("remove {named}"));
        }
        self.saw("member joins");
        self.open(&format!("insert {named} else {{"));
        self.line("count one");
        self.close("}");
    }

    /// The member that a hash belongs to.
    pub(super) fn choose_member(&mut self, scope: &Scope, depth: u32) {
        self.saw("member chosen");
        let hash = self.expression(scope, &GeneratedType::Uint(32), 1, true);
        let (subject, types) = if self.random.one_in(3) {
            (format!("pairs[{hash}]"), vec![GeneratedType::Uint(8), GeneratedType::Uint(48)])
        } else {
            let (name, index) = self.one_group(scope);
            let index = index.map(|index| format!("{index}, ")).unwrap_or_default();
            (format!("{name}[{index}{hash}]"), vec![GeneratedType::Port])
        };
        let (pattern, inner) = self.bind(scope, &types);
        self.open(&format!("match {subject} {{"));
        self.open(&format!("some {pattern} => {{"));
        self.inside(&inner, 2, depth - 1);
        self.close("}");
        self.line("none => { }");
        self.close("}");
    }

    /// To all members, and nothing comes behind it.
    pub(super) fn send_to_members(&mut self, scope: &Scope) {
        self.saw("multicast group");
        let (name, index) = self.one_group(scope);
        let index = index.map(|index| format!("[{index}]")).unwrap_or_default();
        self.line(&format!("multicast {name}{index}"));
    }
}
