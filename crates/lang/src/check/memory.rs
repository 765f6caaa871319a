//! Meters, registers, pools and groups: their declarations, and the expressions and statements that use them.

use super::declarations::kind_of;
use super::expressions::error;
use super::hir::{Expr, ExprKind, Placement, StmtKind};
use super::types::{EnumId, Type};
use super::{Checker, Context, Enum, counted};
use crate::ast::{self, EntryKey, GroupProperty};
use crate::diagnostic::{Diagnostic, Findings};
use crate::limits::MOST_CELLS;
use ir::limits::{MOST_BUCKETS, MOST_COLUMNS, MOST_COPIES, MOST_ITEMS, MOST_MEMBERS};
use ir::source::Span;
use ir::{Match, Rates};
use tables::meter::MeterSpec;

impl<'a> Checker<'a> {
    /// Makes the colours of meters known.
    pub(super) fn declare_colours(&mut self) {
        let members = ["green", "yellow", "red"].iter().zip(0..);
        let members = members.map(|(name, value)| (name.to_string(), value)).collect();
        let id = EnumId(self.enums.len());
        self.enums.push(Enum { name: "colour".to_string(), width: 2, members });
        self.names.enums.insert("colour".to_string(), id);
        self.colours = Some(id);
    }

    fn colour(&self) -> Type {
        self.colours.map_or(Type::Unknown, |id| Type::Enum(id, "colour".to_string(), 2))
    }

    fn cells(&mut self, name: &ast::Name, size: Option<&ast::Expr>, what: &str) -> u32 {
        let Some(expr) = size else { return 1 };
        self.names.indexed.insert(name.text.clone());
        let headline = format!("a {what} has 1 to {MOST_CELLS} cells");
        self.number_within(expr, 1..=MOST_CELLS, "E0501", headline).unwrap_or(1)
    }

    pub(super) fn define_meter(&mut self, item: &ast::Meter) {
        let size = self.cells(&item.name, item.size.as_ref(), "meter");
        if !matches!(item.unit.text.as_str(), "bytes" | "packets") {
            self.unknown("unit", &item.unit.text, item.unit.span, ["bytes", "packets"].into_iter());
        }
        let mut rates: Vec<(&str, u64)> = Vec::new();
        for (name, value) in &item.rates {
            if rates.iter().any(|(other, _)| *other == name.text) {
                self.diagnostics.given_twice(format!("`{}` is given twice", name.text), name.span);
            }
            let burst = name.text != "committed" && name.text != "peak";
            let width = if burst { 32 } else { 64 };
            let number = self.constant(value, &Type::Uint(width)).unwrap_or(1) as u64;
            rates.push((&name.text, number));
        }
        let rate = |name: &str| rates.iter().find(|(other, _)| *other == name).map(|(_, number)| *number);
        let (committed, burst, excess) = (rate("committed"), rate("burst"), rate("excess"));
        let rates = match (committed, burst, excess, rate("peak"), rate("peak_burst")) {
            (Some(committed @ 1..), Some(burst), excess, None, None)
                if burst > 0 || excess.unwrap_or(0) > 0 =>
            {
                Rates::Single { committed, burst, excess: excess.unwrap_or(0) }
            }
            (Some(committed @ 1..), Some(burst @ 1..), None, Some(peak), Some(peak_burst @ 1..))
                if peak >= committed =>
            {
                Rates::Two { committed, burst, peak, peak_burst }
            }
            _ => {
                // No declaration has a dot in its name: it is the meter of a policy's limits.
                let fault = match item.name.text.contains('.') {
                    true => Diagnostic::error(
                        "E0524",
                        "a limit of 0 lets nothing through",
                        item.name.span,
                        "rate and burst are at least 1",
                    )
                    .help("the smallest is `limit 1/s burst 1`; to let nothing through, write no rule"),
                    false => Diagnostic::error(
                        "E0524",
                        format!("the rates of `{}` make no meter", item.name.text),
                        item.name.span,
                        "these do not go together",
                    )
                    .help("one rate: `committed 125k burst 64k excess 64k` (RFC 2697); two: `committed 125k burst 64k peak 250k peak_burst 64k`, the peak not below the committed rate (RFC 2698); none is zero"),
                };
                self.report(fault);
                Rates::Single { committed: 1, burst: 1, excess: 0 }
            }
        };
        let largest = MeterSpec::largest_burst(item.period);
        if let Rates::Single { burst: burst @ 1.., .. } = rates
            && burst > largest
        {
            let headline = format!("a burst of {burst} is too large for this time");
            let label = format!("the largest is {largest}");
            let fault = Diagnostic::error("E0584", headline, item.span, label);
            self.report(fault.help("give a smaller burst, or the rate for a shorter time, such as `/min`"));
        }
        self.names.meters.insert(item.name.text.clone(), self.program.meters.len() as u32);
        let packets = item.unit.text == "packets";
        self.program.meters.push(ir::Meter {
            name: item.name.text.clone(),
            size,
            packets,
            period: item.period,
            rates,
        });
    }

    fn column(&self, ty: &Type) -> ir::Column {
        ir::Column { name: String::new(), kind: kind_of(&self.enums, ty), width: ty.width().unwrap_or(1) }
    }

    pub(super) fn define_register(&mut self, item: &ast::Register) {
        let size = self.cells(&item.name, item.size.as_ref(), "register");
        let ty = self.resolve_type(&item.ty);
        if ty.width().is_some_and(|width| width > 64) {
            self.error(
                "E0528",
                "a cell of a register has at most 64 bits",
                item.ty.span,
                format!("{ty} is wider"),
            );
        }
        let column = self.column(&ty);
        self.names.registers.insert(item.name.text.clone(), self.program.registers.len() as u32);
        self.program.registers.push((ir::Register { name: item.name.text.clone(), size, column }, ty));
    }

    pub(super) fn define_pool(&mut self, item: &ast::Pool) {
        let types: Vec<Type> = item.types.iter().map(|ty| self.resolve_type(ty)).collect();
        let mut ranges = Vec::new();
        if item.ranges.len() != types.len() {
            self.error(
                "E0503",
                format!("an item of `{}` has {}", item.name.text, counted(types.len(), "part")),
                item.name.span,
                format!("{} given", counted(item.ranges.len(), "range")),
            );
        }
        for (key, ty) in item.ranges.iter().zip(&types) {
            ranges.push(self.pool_range(key, ty).unwrap_or((0, 0)));
        }
        ranges.resize(types.len(), (0, 0));
        let columns = types.iter().map(|ty| self.column(ty)).collect();
        let pool = ir::Pool { name: item.name.text.clone(), columns, ranges };
        if types.len() > MOST_COLUMNS {
            self.error(
                "E0506",
                "an item has at most 8 parts",
                item.name.span,
                format!("this has {}", types.len()),
            );
        }
        if pool.items() > MOST_ITEMS {
            self.error(
                "E0501",
                format!("a pool has at most {MOST_ITEMS} items"),
                item.name.span,
                format!("this has {}", pool.items()),
            );
        }
        self.names.pools.insert(item.name.text.clone(), self.program.pools.len() as u32);
        self.program.pools.push((pool, types));
    }

    fn pool_range(&mut self, key: &EntryKey, ty: &Type) -> Option<(u128, u128)> {
        Some(match self.entry_key(key, ty)? {
            Match::Exact(number) => (number, number),
            Match::Range { low, high } => (low, high),
            Match::Prefix { value, length } => {
                (value, value | (ty.largest() & !ir::prefix_mask(ty.width()?, length)))
            }
            _ => {
                self.error(
                    "E0518",
                    "a pool is made of values, ranges and prefixes",
                    key.span(),
                    "not possible here",
                );
                return None;
            }
        })
    }

    pub(super) fn define_group(&mut self, item: &ast::Group) {
        let size = self.cells(&item.name, item.size.as_ref(), "group");
        let types: Vec<Type> = item.types.iter().map(|ty| self.resolve_type(ty)).collect();
        let (mut buckets, mut capacity, mut members, mut file) = (256, 16, Vec::new(), None);
        for property in &item.properties {
            match property {
                GroupProperty::Buckets(expr) => buckets = self.group_buckets(expr),
                GroupProperty::Capacity(expr) => {
                    let headline = format!("a group has room for 1 to {MOST_MEMBERS} members");
                    let most = u128::from(MOST_MEMBERS);
                    capacity = self.number_within(expr, 1..=most, "E0525", headline).unwrap_or(16);
                }
                GroupProperty::From(path, span) => {
                    if file.is_some() {
                        let headline = format!("`from` is given twice for `{}`", item.name.text);
                        self.diagnostics.given_twice(headline, *span);
                    }
                    file = self.named_file(path, *span);
                }
                GroupProperty::Members(listed) => {
                    for member in listed {
                        members.extend(self.member(member, &types, item.size.is_some(), size));
                    }
                }
            }
        }
        if buckets < capacity {
            self.error(
                "E0525",
                format!("`{}` has fewer buckets than members", item.name.text),
                item.name.span,
                format!("{buckets} buckets for up to {capacity} members"),
            );
            buckets = capacity.next_power_of_two();
        }
        if let Some(what) = surplus(&members, capacity) {
            let headline = format!("{what} in `{}`", item.name.text);
            self.error("E0525", headline, item.name.span, "declared here");
        }
        let columns = types.iter().map(|ty| self.column(ty)).collect();
        self.names.groups.insert(item.name.text.clone(), self.program.groups.len() as u32);
        let group = ir::Group {
            name: item.name.text.clone(),
            size,
            buckets,
            capacity,
            multicast: false,
            columns,
            members,
            file,
        };
        self.program.groups.push((group, types));
    }

    fn group_buckets(&mut self, expr: &ast::Expr) -> u32 {
        let buckets = self.constant(expr, &Type::Uint(32)).unwrap_or(256) as u32;
        if buckets.is_power_of_two() && buckets <= MOST_BUCKETS {
            return buckets;
        }
        self.error("E0525", "buckets come in powers of two", expr.span, format!("this is {buckets}"));
        256
    }

    fn member(
        &mut self,
        member: &ast::Member,
        types: &[Type],
        indexed: bool,
        size: u32,
    ) -> Option<(u32, Vec<u128>, u32)> {
        if member.index.is_some() != indexed || member.parts.len() != types.len() {
            let index = if indexed { "its group's number, `3: `, and " } else { "" };
            self.error(
                "E0525",
                "this is no member of the group",
                member.span,
                format!("{index}{} wanted", counted(types.len(), "part")),
            );
            return None;
        }
        let index = match &member.index {
            Some(index) => self.constant(index, &Type::Uint(32))? as u32,
            None => 0,
        };
        let mut columns = Vec::new();
        for (part, ty) in member.parts.iter().zip(types) {
            columns.push(self.constant(part, ty)?);
        }
        let weight = match &member.weight {
            Some(weight) => self.constant(weight, &Type::Uint(16))? as u32,
            None => 1,
        };
        if index >= size || weight == 0 {
            let what = if weight == 0 { "a weight of zero gets nothing" } else { "there is no such group" };
            self.error("E0525", "this is no member of the group", member.span, what);
            return None;
        }
        Some((index, columns, weight))
    }

    /// A pool by its name; reports unknown ones.
    pub(super) fn pool_named(&mut self, name: &ast::Name) -> Option<u32> {
        self.named("pool", name, |names| &names.pools)
    }

    /// State is read and written where packets and handlers run.
    fn needs_state(&mut self, name: &str, span: Span) -> bool {
        let running = matches!(self.scope.context, Context::Packet | Context::Handler);
        if !running {
            self.error(
                "E0213",
                format!("`{name}` cannot be used here"),
                span,
                "only stages, decoders and handlers read and change what is remembered",
            );
        }
        running
    }

    /// The number of a cell, 32 bits.
    fn cell(&mut self, index: &ast::Expr) -> Expr {
        let index = self.expression(index, Some(&Type::Uint(32)));
        if !matches!(index.ty, Type::Uint(1..=32) | Type::Port | Type::Enum(..) | Type::Unknown) {
            self.error(
                "E0200",
                format!("a cell is numbered, not {}", index.ty),
                index.span,
                "an unsigned integer of at most 32 bits is wanted",
            );
            return error(index.span);
        }
        index
    }

    /// `name[keys]` or `name` where it is a meter, register or group; `None` if it is none of them.
    pub(super) fn remembered(&mut self, name: &str, keys: &[ast::Expr], span: Span) -> Option<Expr> {
        if let Some(&meter) = self.names.meters.get(name) {
            return Some(self.mark(meter, name, keys, span));
        }
        if let Some(&register) = self.names.registers.get(name) {
            return Some(self.read_register(register, name, keys, span));
        }
        if let Some(&group) = self.names.groups.get(name) {
            return Some(self.choose(group, name, keys, span));
        }
        None
    }

    fn mark(&mut self, meter: u32, name: &str, keys: &[ast::Expr], span: Span) -> Expr {
        let cells = usize::from(self.names.indexed.contains(name));
        if !self.needs_state(name, span) || !self.diagnostics.parts(name, keys, cells..=cells + 1, span) {
            return error(span);
        }
        let colour = self.colour();
        let index = (cells == 1).then(|| Box::new(self.cell(&keys[0])));
        let before = keys.get(cells).map(|before| Box::new(self.typed(before, &colour)));
        Expr { kind: ExprKind::Mark(meter, index, before), ty: colour, span }
    }

    fn read_register(&mut self, register: u32, name: &str, keys: &[ast::Expr], span: Span) -> Expr {
        let (_, ty) = self.program.registers[register as usize].clone();
        let cells = usize::from(self.names.indexed.contains(name));
        if !self.needs_state(name, span) || !self.diagnostics.parts(name, keys, cells..=cells, span) {
            return error(span);
        }
        let index = keys.first().map(|index| Box::new(self.cell(index)));
        Expr { kind: ExprKind::Register(register, index), ty, span }
    }

    fn choose(&mut self, group: u32, name: &str, keys: &[ast::Expr], span: Span) -> Expr {
        let (_, types) = self.program.groups[group as usize].clone();
        let cells = usize::from(self.names.indexed.contains(name));
        if !self.needs_state(name, span) || !self.diagnostics.parts(name, keys, cells + 1..=cells + 1, span) {
            return error(span);
        }
        let index = (cells == 1).then(|| Box::new(self.cell(&keys[0])));
        let hash = self.typed(&keys[cells], &Type::Uint(32));
        let ty = Type::Option(Box::new(one_or_tuple(types)));
        Expr { kind: ExprKind::Choose(group, index, Box::new(hash)), ty, span }
    }

    /// A call of `hash`, `clip` or `take`; `None` if it is none of them.
    pub(super) fn builtin(&mut self, name: &ast::Name, args: &[ast::Expr], span: Span) -> Option<Expr> {
        match name.text.as_str() {
            "hash" => {
                let mut values = Vec::new();
                for arg in args {
                    let value = self.expression(arg, None);
                    if value.ty.width().is_none() {
                        self.error(
                            "E0526",
                            "`hash` takes single values",
                            value.span,
                            format!("this is {}", value.ty),
                        );
                        return Some(error(span));
                    }
                    values.push(value);
                }
                if values.is_empty() {
                    self.error("E0526", "`hash` takes at least one value", span, "nothing to hash");
                    return Some(error(span));
                }
                Some(Expr { kind: ExprKind::Hash(values), ty: Type::Uint(32), span })
            }
            "clip" => {
                let [view, length] = args else {
                    self.error("E0206", "`clip` takes bytes and a length", span, "wrong number of values");
                    return Some(error(span));
                };
                let view = self.expression(view, None);
                if !matches!(view.ty, Type::View | Type::Unknown) {
                    self.error("E0526", "`clip` takes bytes", view.span, format!("this is {}", view.ty));
                    return Some(error(span));
                }
                let length = self.typed(length, &Type::Uint(32));
                Some(Expr { kind: ExprKind::Clip(Box::new(view), Box::new(length)), ty: Type::View, span })
            }
            "take" => Some(self.take_from(args, span)),
            _ => None,
        }
    }

    fn take_from(&mut self, args: &[ast::Expr], span: Span) -> Expr {
        let pool = match args {
            [ast::Expr { kind: ast::ExprKind::Word(name), span }]
            | [ast::Expr { kind: ast::ExprKind::Word(name), span }, _] => {
                self.pool_named(&ast::Name { text: name.clone(), span: *span })
            }
            _ => {
                self.error(
                    "E0526",
                    "`take` takes a pool and perhaps a number to begin at",
                    span,
                    "no pool is named",
                );
                None
            }
        };
        let Some(pool) = pool else { return error(span) };
        if !self.needs_state("take", span) {
            return error(span);
        }
        let hint = args.get(1).map(|hint| Box::new(self.cell(hint)));
        let types = self.program.pools[pool as usize].1.clone();
        Expr { kind: ExprKind::Take(pool, hint), ty: Type::Option(Box::new(one_or_tuple(types))), span }
    }

    pub(super) fn set_register(
        &mut self,
        name: &ast::Name,
        index: Option<&'a ast::Expr>,
        value: &'a ast::Expr,
    ) -> Option<StmtKind> {
        let register = self.named("register", name, |names| &names.registers)?;
        let (_, ty) = self.program.registers[register as usize].clone();
        let indexed = self.names.indexed.contains(&name.text);
        if indexed != index.is_some() {
            let label = if indexed { "say which cell: `set r[i] = …`" } else { "it has one cell" };
            self.error("E0514", format!("`{}` is written wrongly", name.text), name.span, label);
            return None;
        }
        let index = index.map(|index| self.cell(index));
        let value = self.typed(value, &ty);
        Some(StmtKind::SetRegister(register, index, value))
    }

    pub(super) fn give(&mut self, name: &ast::Name, parts: &'a [ast::Expr], span: Span) -> Option<StmtKind> {
        let pool = self.pool_named(name)?;
        let types = self.program.pools[pool as usize].1.clone();
        if !self.diagnostics.parts(&name.text, parts, types.len()..=types.len(), span) {
            return None;
        }
        Some(StmtKind::Give(pool, self.all_typed(parts, &types)))
    }

    /// A packet to all members of a group.
    pub(super) fn multicast_group(
        &mut self,
        name: &ast::Name,
        index: Option<&ast::Expr>,
        span: Span,
    ) -> Option<StmtKind> {
        let group = self.named("group", name, |names| &names.groups)?;
        let cells = usize::from(self.names.indexed.contains(&name.text));
        let (declared, types) = &mut self.program.groups[group as usize];
        let capacity = declared.capacity;
        let fault = if types.as_slice() != [Type::Port] {
            Some("its members are no ports: declare `group … : port`".to_string())
        } else if capacity > MOST_COPIES {
            Some(format!("at most {} copies, and it has room for {capacity} members", MOST_COPIES))
        } else {
            declared.multicast = true;
            None
        };
        if let Some(fault) = fault {
            self.error("E0418", format!("`{}` is no multicast group", name.text), name.span, fault);
            return None;
        }
        let given: Vec<ast::Expr> = index.cloned().into_iter().collect();
        if !self.diagnostics.parts(&name.text, &given, cells..=cells, span) {
            return None;
        }
        let index = index.map(|index| self.cell(index));
        Some(StmtKind::MulticastGroup(group, index))
    }

    /// A member of a group, as `insert` and `remove` name it.
    pub(super) fn group_member(
        &mut self,
        group: u32,
        name: &str,
        keys: &[ast::Expr],
        span: Span,
    ) -> Option<Placement> {
        let (_, types) = self.program.groups[group as usize].clone();
        let cells = usize::from(self.names.indexed.contains(name));
        let wanted = cells + types.len();
        if !self.diagnostics.parts(name, keys, wanted..=wanted, span) {
            return None;
        }
        let index = (cells == 1).then(|| self.cell(&keys[0]));
        let member = self.all_typed(&keys[cells..], &types);
        Some(Placement::Member { group, index, member })
    }
}

impl Findings {
    /// Reports a wrong number of parts between the brackets.
    fn parts(
        &mut self,
        name: &str,
        keys: &[ast::Expr],
        wanted: std::ops::RangeInclusive<usize>,
        span: Span,
    ) -> bool {
        let fits = wanted.contains(&keys.len());
        if !fits {
            let least = counted(*wanted.start(), "part");
            self.error(
                "E0503",
                format!("`{name}[…]` has {least}, not {}", keys.len()),
                span,
                "wrong number of parts",
            );
        }
        fits
    }
}

/// The type of what has these parts.
pub(super) fn one_or_tuple(mut types: Vec<Type>) -> Type {
    if types.len() == 1 { types.remove(0) } else { Type::Tuple(types) }
}

/// What is wrong with the members of a group, if some are too many.
fn surplus(members: &[ir::GroupMember], capacity: u32) -> Option<&'static str> {
    members.iter().enumerate().find_map(|(position, (index, columns, _))| {
        let before = &members[..position];
        let mates = before.iter().filter(|(other, ..)| other == index).count();
        if before.iter().any(|(other, theirs, _)| other == index && theirs == columns) {
            return Some("a member stands twice");
        }
        (mates >= capacity as usize).then_some("there are more members than room")
    })
}
