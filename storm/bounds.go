package storm

// bounded reports whether the calls or the connections of each instance are bounded.
func (c *Client) bounded() bool {
	return c.Connections > 0 || c.MaxConcurrent > 0 || c.Policy != nil && c.Policy.MaxConcurrent > 0
}

// bound multiplies the bounds of an instance by k, for one that has k times the load.
func (c *Client) bound(k float64) {
	c.Connections = whole(c.Connections, k)
	c.MaxConcurrent = whole(c.MaxConcurrent, k)
	if c.Policy != nil {
		p := *c.Policy
		p.MaxConcurrent = whole(p.MaxConcurrent, k)
		c.Policy = &p
	}
}
