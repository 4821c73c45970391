package validate

// forms counts the steps of the keywords that apply other schemas to the same value.
func (m *meter) forms(r *rule, v any, p place) bool {
	before := m.wrong
	if !m.all(r.allOf, v, p.inner()) || m.wrong > before && !m.problems(1, p) {
		return false
	}
	return m.anyOf(r.anyOf, v, p) && m.oneOf(r.oneOf, v, p) && m.not(r.not, v, p) && m.condition(r, v, p)
}

func (m *meter) all(rules []*rule, v any, p place) bool {
	for _, r := range rules {
		if !m.rule(r, v, p) {
			return false
		}
	}
	return true
}

func (m *meter) anyOf(forms []*rule, v any, p place) bool {
	for _, form := range forms {
		if matches, ok := m.matches(form, v, p.form()); matches || !ok {
			return ok
		}
	}
	return len(forms) == 0 || m.noForm(forms, v, p)
}

func (m *meter) oneOf(forms []*rule, v any, p place) bool {
	matched := 0
	for _, form := range forms {
		matches, ok := m.matches(form, v, p.form())
		if !ok {
			return false
		}
		if matches {
			matched++
		}
	}
	return len(forms) == 0 || matched == 1 || m.noForm(forms, v, p)
}

// noForm counts the steps of finding out which form a value was meant to have.
func (m *meter) noForm(forms []*rule, v any, p place) bool {
	object, _ := v.(map[string]any)
	return m.problems(1, p) && m.spend(50*len(forms)*len(object))
}

func (m *meter) not(r *rule, v any, p place) bool {
	if r == nil {
		return true
	}
	matches, ok := m.matches(r, v, p.inner())
	return ok && (!matches || m.problems(1, p) && m.spend(schemaSteps*r.size))
}

func (m *meter) condition(r *rule, v any, p place) bool {
	if r.condition == nil {
		return true
	}
	matches, ok := m.matches(r.condition, v, p.inner())
	if !ok {
		return false
	}
	branch := r.then
	if !matches {
		branch = r.otherwise
	}
	before := m.wrong
	return m.rule(branch, v, p.inner()) && (m.wrong == before || m.problems(1, p))
}

// unevaluated counts the steps of finding the members that no other keyword has evaluated.
func (m *meter) unevaluated(r *rule, v any, p place) bool {
	others := r.unevaluatedProperties
	if _, isArray := v.([]any); isArray {
		others = r.unevaluatedItems
	}
	if others == nil {
		return true
	}
	evaluating := r.withoutUnevaluated()
	for key, member := range members(v) {
		evaluated := m.patterns(r, key) && evaluating.evaluates(v, key, func(r *rule, v any) bool {
			matches, ok := m.matches(r, v, p.inner())
			return matches && ok && m.patterns(r, key)
		})
		if !evaluated && !m.rule(others, member, p.below(key)) {
			return false
		}
	}
	return m.left >= 0
}
