package validate

import "github.com/santhosh-tekuri/jsonschema/v6"

// compileSanthosh compiles a schema with santhosh-tekuri/jsonschema, which the tests
// hold mcpx against.
func compileSanthosh(root any, draft int) (func(any) bool, error) {
	const here = "mcpx:///input-schema"
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	compiler.DefaultDraft(jsonschema.Draft2020)
	if draft <= 7 {
		compiler.DefaultDraft(jsonschema.Draft7)
	}
	if err := compiler.AddResource(here, root); err != nil {
		return nil, err
	}
	schema, err := compiler.Compile(here)
	if err != nil {
		return nil, err
	}
	return func(arguments any) bool { return schema.Validate(arguments) == nil }, nil
}

// nowhere loads nothing: by default the library reads files.
type nowhere struct{}

func (nowhere) Load(string) (any, error) { return nil, errClosed }
