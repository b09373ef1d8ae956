package script

import "context"

func compileOnce(string) (*compiled, error) { return &compiled{}, nil }
func (p *Program) fault(err error) error    { return err }
func (p *Program) answerable() error        { return nil }
func (p *Program) function() (string, bool) { return "", false }
func (p *Program) evaluate(context.Context, Inputs) (*Outputs, error) {
	return nil, p.fault(&Error{Customization: p.customization, Operation: p.operation, Reason: Runtime, Message: "scripts are not run yet"})
}
